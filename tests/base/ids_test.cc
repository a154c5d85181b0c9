#include "common/base/ids.h"

#include <set>
#include <unordered_set>

#include "need.h"

using namespace det;

TEST_CASE("a task key has the type and the number of its id") {
  const TaskKey trial = TrialId(7), command = CommandId(7);
  CHECK(trial.as<TrialId>() == TrialId(7));
  CHECK_FALSE(trial.as<CommandId>());
  CHECK(command.as<CommandId>() == CommandId(7));
  CHECK_FALSE(command.as<TrialId>());
  CHECK(trial.number() == 7);
  CHECK(command.number() == 7);
  CHECK(name_of(trial) == "trial 7");
  CHECK(name_of(command) == "command 7");
  CHECK(name_of(JobKey(ExperimentId(3))) == "experiment 3");
}

TEST_CASE("keys of a trial and a command with one number differ") {
  const TaskKey trial = TrialId(7), command = CommandId(7);
  CHECK(trial != command);
  CHECK(trial.packed() != command.packed());
  CHECK(std::unordered_set<TaskKey>{trial, command, TrialId(7)}.size() == 2);
}

TEST_CASE("task keys are ordered by type, then by number") {
  const std::int64_t largest = (std::int64_t{1} << 56) - 1;
  const std::set<TaskKey> sorted{CommandId(1), TrialId(largest), CommandId(largest), TrialId(2)};
  const std::vector<TaskKey> in_order(sorted.begin(), sorted.end());
  CHECK(in_order == std::vector<TaskKey>{TrialId(2), TrialId(largest), CommandId(1), CommandId(largest)});
  CHECK(in_order.back().number() == largest);
}

TEST_CASE("an id out of range becomes a key that no object has") {
  // A request may name any number.
  CHECK(TaskKey(TrialId(-5)) == TaskKey());
  CHECK(TaskKey(TrialId(INT64_MIN)) == TaskKey());
  CHECK(TaskKey(CommandId(INT64_MAX)) == TaskKey(CommandId(0)));
  CHECK_FALSE(TaskKey(TrialId(-5)).as<CommandId>());
}
