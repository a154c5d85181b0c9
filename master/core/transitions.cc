// Tables of legal state changes (see the header for an overview).
#include "master/core/transitions.h"

#include <cstdio>
#include <cstdlib>

namespace det::core {
namespace {

/// An illegal change means that the state in memory is wrong. Going on would store it, so the process ends.
template <typename S, typename Name>
void change_checked(bool legal, S& state, S to, Name name) {
  if (!legal) {
    const std::string from_name(name(state)), to_name(name(to));
    std::fprintf(stderr, "broken rule: state %s may not become %s\n", from_name.c_str(), to_name.c_str());
    std::abort();
  }
  state = to;
}

}  // namespace

bool is_legal(State from, State to) {
  switch (from) {
    case State::kActive:
      return to == State::kPaused || is_stopping(to) || is_terminal(to);
    case State::kPaused:
      return to == State::kActive || is_stopping(to) || is_terminal(to);
    case State::kStoppingCompleted:
      return to == State::kStoppingCanceled || to == State::kStoppingKilled || to == State::kStoppingError ||
             to == State::kCompleted || to == State::kError;
    case State::kStoppingCanceled:
      return to == State::kStoppingKilled || to == State::kStoppingError || to == State::kCanceled ||
             to == State::kError;
    // A kill ends as canceled, however the killed process exits.
    case State::kStoppingKilled:
      return to == State::kStoppingError || to == State::kCanceled;
    case State::kStoppingError:
      return to == State::kError;
    case State::kCompleted:
    case State::kCanceled:
    case State::kError:
      return false;
  }
  return false;
}

// Agents report states, and reports may be lost: any later state is legal, an earlier one never.
bool is_legal(AllocationState from, AllocationState to) { return from < to; }

void change(State& state, State to) { change_checked(is_legal(state, to), state, to, state_name); }
void change(AllocationState& state, AllocationState to) {
  change_checked(is_legal(state, to), state, to, allocation_state_name);
}
void reopen(State& state, State to) {
  change_checked(is_terminal(state) && (to == State::kActive || to == State::kPaused), state, to, state_name);
}

State end_of(State stopping) {
  switch (stopping) {
    case State::kStoppingCanceled:
    case State::kStoppingKilled:
      return State::kCanceled;
    case State::kStoppingError:
      return State::kError;
    default:
      return State::kCompleted;
  }
}

}  // namespace det::core
