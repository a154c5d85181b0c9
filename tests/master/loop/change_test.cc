// Conversion of durable writes to changes.
#include "master/loop/change.h"

#include <catch2/catch.hpp>

namespace det {
namespace {

using core::State;

core::PutExperiment experiment(std::int64_t id, State state) {
  core::PutExperiment write;
  write.row.id = ExperimentId(id);
  write.row.state = state;
  return write;
}

core::Write trial(std::int64_t id, State state) {
  core::PutTrial write;
  write.row.id = TrialId(id);
  write.row.state = state;
  return write;
}

TEST_CASE("a change says whether its state was written last time, for experiments and trials apart") {
  const std::vector<core::Write> writes = {
      experiment(1, State::kActive), trial(1, State::kActive),         experiment(2, State::kActive),
      trial(1, State::kActive),      experiment(1, State::kActive),    experiment(1, State::kCompleted),
      trial(1, State::kPaused),      experiment(1, State::kCompleted), trial(1, State::kActive),
  };
  loop::WrittenStates states;
  std::vector<loop::Change> changes;
  loop::add_changes(writes, 0, {}, states, changes);
  std::vector<bool> same;
  for (const loop::Change& change : changes) same.push_back(change.same_state);
  CHECK(same == std::vector<bool>{false, false, false, true, true, false, false, true, false});
}

TEST_CASE("a change of an experiment's queue settings is not only progress") {
  core::PutExperiment before = experiment(1, State::kActive);
  core::PutExperiment after = before;
  after.row.queue.priority = 7;
  loop::WrittenStates states;
  std::vector<loop::Change> changes;
  loop::add_changes({before, after, after}, 0, {}, states, changes);
  REQUIRE(changes.size() == 3);
  CHECK_FALSE(changes[1].same_state);
  CHECK(changes[2].same_state);
}

TEST_CASE("a change of another kind has no state before") {
  core::InsertValidation write;
  write.trial = TrialId(1);
  loop::WrittenStates states;
  std::vector<loop::Change> changes;
  loop::add_changes({write, write}, 0, {}, states, changes);
  REQUIRE(changes.size() == 2);
  CHECK_FALSE(changes[1].same_state);
}

}  // namespace
}  // namespace det
