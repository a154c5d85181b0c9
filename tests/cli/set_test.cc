// `det experiment set` and queue changes: the request sent for each command line.
#include <catch2/catch.hpp>

#include "common/base/text.h"
#include "fake_master.h"

namespace det::cli::test {

TEST_CASE("each setting changes one field of the patch") {
  FakeMaster master;
  const auto set = [&](const std::vector<std::string>& words) {
    std::vector<std::string> arguments{"experiment", "set"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const auto done = master.det(arguments);
    INFO(join(words, " ") << ": " << done.err);
    CHECK(done.status.code == 0);
    REQUIRE(!master.world.patches.empty());
    return std::pair(master.world.patches.back().ShortDebugString(), done.out);
  };
  using Said = std::pair<std::string, std::string>;
  CHECK(set({"priority", "3", "10"}) ==
        Said("id: 3 resources { priority { value: 10 } }", "Set priority of experiment 3 to 10\n"));
  CHECK(set({"weight", "3", "2.5"}) ==
        Said("id: 3 resources { weight { value: 2.5 } }", "Set weight of experiment 3 to 2.5\n"));
  CHECK(set({"max-slots", "3", "0"}).first == "id: 3 resources { max_slots { } }");
  CHECK(set({"max-slots", "3", "8"}).first == "id: 3 resources { max_slots { value: 8 } }");
  CHECK(set({"name", "3", "the \x1b[31mbest"}) == Said("id: 3 name { value: \"the \\033[31mbest\" }",
                                                       "Set name of experiment 3 to 'the \\x1b[31mbest'\n"));
  CHECK(set({"description", "3", "x"}).first == "id: 3 description { value: \"x\" }");
  const auto policy = set({"gc-policy", "3", "--save-experiment-best", "1", "--save-trial-best", "2",
                           "--save-trial-latest", "0", "--yes"});
  CHECK(policy.first == "id: 3 checkpoint_storage { save_experiment_best: 1 save_trial_best: 2 }");
  CHECK(policy.second == "Set checkpoint policy of experiment 3; it takes effect at the next collection\n");
}

TEST_CASE("invalid settings are refused before a request is sent") {
  FakeMaster master;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"priority", "3", "0"},
                                             {"priority", "3", "100"},
                                             {"priority", "3", "high"},
                                             {"weight", "3", "0"},
                                             {"weight", "3", "-1"},
                                             {"max-slots", "3", "-1"},
                                             {"priority", "3"},
                                             {"priority", "x", "3"},
                                             {"gc-policy", "3", "--save-experiment-best", "1"},
                                             {"gc-policy", "3", "--save-experiment-best", "-1",
                                              "--save-trial-best", "0", "--save-trial-latest", "0"}}) {
    std::vector<std::string> arguments{"experiment", "set"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    const auto done = master.det(arguments);
    INFO(join(words, " "));
    CHECK(done.status.code == 2);
    CHECK(split(done.err, '\n').size() == 2);
  }
  CHECK(master.world.patches.empty());
}

TEST_CASE("the retention of logs is sent in days; -1 keeps them") {
  FakeMaster master;
  CHECK(master.det({"trial", "set", "log-retention", "7", "--days", "30"}).out ==
        "Logs of trial 7 are kept for 30 days after their end\n");
  CHECK(master.det({"e", "set", "log-retention", "3", "--forever"}).out ==
        "Logs of experiment 3 are kept forever\n");
  CHECK(master.world.retentions == std::vector<std::string>{"trial 7: 30", "experiment 3: -1"});
  for (const std::vector<std::string>& words : {std::vector<std::string>{"7"},
                                                {"7", "--days", "-1"},
                                                {"7", "--days", "40000"},
                                                {"7", "--days", "1", "--forever"}}) {
    std::vector<std::string> arguments{"trial", "set", "log-retention"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    CHECK(master.det(arguments).status.code == 2);
  }
  CHECK(master.world.retentions.size() == 2);
}

TEST_CASE("a checkpoint policy that deletes checkpoints needs confirmation") {
  FakeMaster master;
  const std::vector<std::string> words{"e",
                                       "set",
                                       "gc-policy",
                                       "3",
                                       "--save-experiment-best",
                                       "1",
                                       "--save-trial-best",
                                       "1",
                                       "--save-trial-latest",
                                       "1"};
  CHECK(master.det(words, "", "token-of-admin", "n\n").status.code == 1);
  CHECK(master.world.patches.empty());
  CHECK(master.det(words, "", "token-of-admin", "y\n").status.code == 0);
  CHECK(master.world.patches.size() == 1);
}

TEST_CASE("a batch of job changes is parsed completely before a request is sent") {
  FakeMaster master;
  const auto check = [&](const std::string& word, const std::string& part) {
    const auto done = master.det({"job", "update-batch", "a.priority=3", word});
    INFO(word << ": " << done.err);
    CHECK(done.status.code == 2);
    CHECK(done.err.find(part) != std::string::npos);
  };
  check("a", "not a change of a job");
  check("a=3", "not a change of a job");
  check("a.priority=x", "\"x\" is not a number");
  check("a.priorty=3", "did you mean \"priority\"?");
}

}  // namespace det::cli::test
