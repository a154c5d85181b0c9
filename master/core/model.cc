// Names of states, as used by the API, the store and user interfaces. The arrays are in the order of the
// enums.
#include "master/core/model.h"

#include <array>
#include <utility>

#include "common/base/secret.h"

namespace det::core {
namespace {

constexpr std::array<std::string_view, 9> kStates = {"ACTIVE",
                                                     "PAUSED",
                                                     "STOPPING_COMPLETED",
                                                     "STOPPING_CANCELED",
                                                     "STOPPING_KILLED",
                                                     "STOPPING_ERROR",
                                                     "COMPLETED",
                                                     "CANCELED",
                                                     "ERROR"};
constexpr std::array<std::string_view, 6> kAllocationStates = {"ASSIGNED", "PULLING",     "STARTING",
                                                               "RUNNING",  "TERMINATING", "TERMINATED"};

constexpr std::array<std::string_view, 5> kPilotPhases = {"SUBMITTED", "PENDING", "RUNNING", "CANCELING",
                                                          "ENDED"};

/// Returns the state with this name, if any.
template <typename S, std::size_t n>
std::optional<S> find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<S>(i);
  }
  return std::nullopt;
}

}  // namespace

bool is_terminal(State state) {
  return state == State::kCompleted || state == State::kCanceled || state == State::kError;
}
bool is_stopping(State state) { return state >= State::kStoppingCompleted && state <= State::kStoppingError; }
std::string_view state_name(State state) { return kStates.at(static_cast<std::size_t>(state)); }
std::optional<State> parse_state(std::string_view name) { return find<State>(kStates, name); }
std::string_view allocation_state_name(AllocationState state) {
  return kAllocationStates.at(static_cast<std::size_t>(state));
}
std::optional<AllocationState> parse_allocation_state(std::string_view name) {
  return find<AllocationState>(kAllocationStates, name);
}

std::string_view pilot_phase_name(PilotPhase phase) {
  return kPilotPhases.at(static_cast<std::size_t>(phase));
}
std::optional<PilotPhase> parse_pilot_phase(std::string_view name) {
  return find<PilotPhase>(kPilotPhases, name);
}

AllocationId allocation_id(const TaskId& task, RunNumber run) {
  return AllocationId(task.value + "." + std::to_string(run));
}

int Allocation::slot_count() const {
  std::size_t count = 0;
  for (const AllocationPart& part : parts) count += part.slots.size();
  return static_cast<int>(count);
}

const AllocationPart* Allocation::part_on(const AgentId& agent) const {
  for (const AllocationPart& part : parts) {
    if (part.agent == agent) return &part;
  }
  return nullptr;
}

bool Allocation::has_token(std::string_view hash) const {
  bool found = false;
  for (const AllocationPart& part : parts)
    if (!hash.empty() && equal_secret(part.token_hash, hash)) found = true;
  return found;
}

// A gang has few parts, and at most one on each agent: a linear search suffices.
AllocationPart* Allocation::part_on(const AgentId& agent) {
  return const_cast<AllocationPart*>(std::as_const(*this).part_on(agent));
}

}  // namespace det::core
