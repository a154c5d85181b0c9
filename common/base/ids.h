// Strongly typed ids: passing a TrialId for an ExperimentId does not compile.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

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
/// Internal id of a command. Users identify a command by its task.
using CommandId = Id<struct CommandTag, std::int64_t>;
using UserId = Id<struct UserTag, std::int64_t>;
/// Name that an agent was started with; unique in the cluster.
using AgentId = Id<struct AgentTag, std::string>;
/// Public id of a task: a unit of work that allocations run. The id of a trial's task is
/// "<experiment>.<request uuid>", that of a command a uuid chosen by the caller.
using TaskId = Id<struct TaskTag, std::string>;
/// One attempt to run a task: "<task>.<run number>".
using AllocationId = Id<struct AllocationTag, std::string>;
/// Identifies a trial within its experiment before it has a TrialId; a UUID made by the searcher.
using RequestId = Id<struct RequestTag, std::string>;
using CheckpointId = Id<struct CheckpointTag, std::string>;  ///< a UUID

/// Fencing number of a trial's runs: counts its allocations from 1. Messages with an older number are
/// rejected.
using RunNumber = std::int32_t;

/// An id of one of several types, each with numbers of its own. Ordered by type, in the order of the list,
/// then by number; hashable, printable. As small and as fast to compare as a plain number, because the
/// scheduler has a sorted set of them for each job.
template <typename... Ids>
class AnyId {
 public:
  /// Number 0 of the first type, which no object has.
  AnyId() = default;
  /// Implicit: every id of these types is one. Numbers are 0..2^56 - 1; any other becomes 0.
  template <typename One>
  requires(std::is_same_v<One, Ids> || ...) AnyId(One id)  // NOLINT(google-explicit-constructor)
      : packed_((type_of<One>() << kNumberBits) | (id.value >= 0 && id.value <= kMaxNumber ? id.value : 0)) {}

  /// Returns the id in its own type, or nothing when it is of another one.
  template <typename One>
  requires(std::is_same_v<One, Ids> || ...) std::optional<One> as()
  const {
    if (packed_ >> kNumberBits != type_of<One>()) return std::nullopt;
    return One(number());
  }
  /// Returns the number within its type.
  std::int64_t number() const { return packed_ & kMaxNumber; }
  /// Returns a number that identifies type and number together, for hash tables. Never stored or sent.
  std::int64_t packed() const { return packed_; }

  auto operator<=>(const AnyId&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const AnyId& id) { return out << name_of(id); }

 private:
  static constexpr int kNumberBits = 56;
  static constexpr std::int64_t kMaxNumber = (std::int64_t{1} << kNumberBits) - 1;

  /// Returns the position of a type in the list.
  template <typename One>
  static constexpr std::int64_t type_of() {
    std::int64_t at = -1, found = 0;
    ((++at, found = std::is_same_v<One, Ids> ? at : found), ...);
    return found;
  }

  std::int64_t packed_ = 0;  ///< the type above kNumberBits, the number below
};

/// What an allocation runs. A further kind of task is a further type in this list.
using TaskKey = AnyId<TrialId, CommandId>;
/// An entry of a queue: all tasks of an experiment, or a command.
using JobKey = AnyId<ExperimentId, CommandId>;

// Names in messages: "experiment 3", "trial 7", "command 2".
inline std::string name_of(ExperimentId id) { return "experiment " + std::to_string(id.value); }
inline std::string name_of(TrialId id) { return "trial " + std::to_string(id.value); }
inline std::string name_of(CommandId id) { return "command " + std::to_string(id.value); }
template <typename... Ids>
std::string name_of(const AnyId<Ids...>& id) {
  std::string name;
  ((id.template as<Ids>() ? void(name = name_of(*id.template as<Ids>())) : void()), ...);
  return name;
}

}  // namespace det

template <typename... Ids>
struct std::hash<det::AnyId<Ids...>> {
  std::size_t operator()(const det::AnyId<Ids...>& id) const noexcept {
    return std::hash<std::int64_t>{}(id.packed());
  }
};

template <typename Tag, typename Value>
struct std::hash<det::Id<Tag, Value>> {
  std::size_t operator()(const det::Id<Tag, Value>& id) const noexcept {
    return std::hash<Value>{}(id.value);
  }
};
