#include "master/core/transitions.h"

#include <catch2/catch.hpp>
#include <vector>

namespace det::core {
namespace {

const std::vector<State> kAll = {State::kActive,           State::kPaused,         State::kStoppingCompleted,
                                 State::kStoppingCanceled, State::kStoppingKilled, State::kStoppingError,
                                 State::kCompleted,        State::kCanceled,       State::kError};

TEST_CASE("terminal states have no transition") {
  for (State from : kAll) {
    for (State to : kAll) {
      if (is_terminal(from)) CHECK_FALSE(is_legal(from, to));
    }
  }
}

TEST_CASE("stopping states only escalate, and end as named or in error") {
  for (State from : kAll) {
    if (!is_stopping(from)) continue;
    CHECK_FALSE(is_legal(from, State::kActive));
    CHECK_FALSE(is_legal(from, State::kPaused));
    CHECK(is_legal(from, end_of(from)));
    for (State to : kAll) {
      if (is_stopping(to)) CHECK(is_legal(from, to) == (from < to));
      if (is_terminal(to) && to != end_of(from)) CHECK((!is_legal(from, to) || to == State::kError));
    }
  }
}

TEST_CASE("state names survive the round trip") {
  for (State state : kAll) CHECK(parse_state(state_name(state)) == state);
  for (int i = 0; i <= static_cast<int>(AllocationState::kTerminated); ++i) {
    const auto state = static_cast<AllocationState>(i);
    CHECK(parse_allocation_state(allocation_state_name(state)) == state);
  }
  CHECK(parse_state("STOPPING_CANCELED") == State::kStoppingCanceled);
  CHECK_FALSE(parse_state("RUNNING"));
}

}  // namespace
}  // namespace det::core
