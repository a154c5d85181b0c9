// Strongly typed ids: passing a TrialId for an ExperimentId does not compile.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace det {

/// An id distinct from every other id type by its tag. Ordered, hashable, printable.
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
/// Name that an agent was started with; unique in the cluster.
using AgentId = Id<struct AgentTag, std::string>;
/// A unit of work that allocations run. The id of a trial's task is "<experiment>.<request uuid>".
using TaskId = Id<struct TaskTag, std::string>;
/// One attempt to run a task: "<task>.<run number>".
using AllocationId = Id<struct AllocationTag, std::string>;
/// Identifies a trial within its experiment before it has a TrialId; a UUID made by the searcher.
using RequestId = Id<struct RequestTag, std::string>;
using CheckpointId = Id<struct CheckpointTag, std::string>;  ///< a UUID

/// Fencing number of a trial's runs: counts its allocations from 1. Messages with an older number are
/// rejected.
using RunNumber = std::int32_t;

}  // namespace det

template <typename Tag, typename Value>
struct std::hash<det::Id<Tag, Value>> {
  std::size_t operator()(const det::Id<Tag, Value>& id) const noexcept {
    return std::hash<Value>{}(id.value);
  }
};
