// Owns the strong ids: a TrialId cannot be passed where an ExperimentId is wanted.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace det {

template <typename Tag, typename Value>
struct Id {
  Value value{};
  Id() = default;
  explicit Id(Value v) : value(std::move(v)) {}
  auto operator<=>(const Id&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Id& id) { return out << id.value; }
};

using ExperimentId = Id<struct ExperimentTag, std::int64_t>;
using TrialId = Id<struct TrialTag, std::int64_t>;
using UserId = Id<struct UserTag, std::int64_t>;
/// The name an agent was started with; unique in the cluster.
using AgentId = Id<struct AgentTag, std::string>;
/// What an allocation runs; of a trial "<experiment>.<request uuid>".
using TaskId = Id<struct TaskTag, std::string>;
/// One try at running a task: "<task>.<run number>".
using AllocationId = Id<struct AllocationTag, std::string>;
/// Names one trial inside its experiment before the trial has a TrialId; a uuid made by the searcher.
using RequestId = Id<struct RequestTag, std::string>;
using CheckpointId = Id<struct CheckpointTag, std::string>;  ///< a uuid

/// Restart fence of a trial: counts its allocations from 1. What carries an older number is refused.
using RunNumber = std::int32_t;

}  // namespace det

template <typename Tag, typename Value>
struct std::hash<det::Id<Tag, Value>> {
  std::size_t operator()(const det::Id<Tag, Value>& id) const noexcept {
    return std::hash<Value>{}(id.value);
  }
};
