#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/output/text_diff.h"
#include "common/archive/archive.h"
#include "common/base/json.h"
#include "fake_master.h"

namespace det::cli::test {
namespace {

std::string numbers(int from, int to) {
  std::string text;
  for (int i = from; i <= to; ++i) text += std::to_string(i) + "\n";
  return text;
}

v1::Experiment experiment(int id, double rate, const std::string& image) {
  v1::Experiment made;
  made.set_id(id);
  auto& fields = *made.mutable_config()->mutable_fields();
  (*fields["hyperparameters"].mutable_struct_value()->mutable_fields())["lr"].set_number_value(rate);
  fields["name"].set_string_value("same");
  (*fields["environment"].mutable_struct_value()->mutable_fields())["image"].set_string_value(image);
  made.mutable_best_trial_id()->set_value(id * 10);
  return made;
}

v1::Trial trial(int id, double loss) {
  v1::Trial made;
  made.set_id(id);
  auto& group = *(*made.mutable_summary_metrics()->mutable_fields())["validation"]
                     .mutable_struct_value()
                     ->mutable_fields();
  (*group["loss"].mutable_struct_value()->mutable_fields())["last"].set_number_value(loss);
  return made;
}

}  // namespace

TEST_CASE("a unified diff equals the output of diff -u") {
  CHECK(unified_diff("", "").empty());
  CHECK(unified_diff("a\nb\n", "a\nb\n").empty());
  CHECK(unified_diff("", "a\n") == "@@ -0,0 +1 @@\n+a\n");
  CHECK(unified_diff("a\n", "") == "@@ -1 +0,0 @@\n-a\n");
  CHECK(unified_diff("a\nb\nc\n", "a\nx\nc\n") == "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
  // Changes far apart form separate hunks, close ones share a hunk.
  std::string changed = numbers(1, 30);
  changed.replace(changed.find("\n5\n") + 1, 1, "five");
  changed.replace(changed.find("\n25\n") + 1, 2, "last");
  CHECK(unified_diff(numbers(1, 30), changed) ==
        "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        "@@ -22,7 +22,7 @@\n 22\n 23\n 24\n-25\n+last\n 26\n 27\n 28\n");
  std::string near = numbers(1, 12);
  near.replace(near.find("\n3\n") + 1, 1, "x");
  near.replace(near.find("\n9\n") + 1, 1, "y");
  CHECK(unified_diff(numbers(1, 12), near) ==
        "@@ -1,12 +1,12 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n 7\n 8\n-9\n+y\n 10\n 11\n 12\n");
}

TEST_CASE("two experiments are compared by code, configuration, environment and metrics") {
  FakeMaster master;
  master.world.experiments[3] = experiment(3, 0.1, "old");
  master.world.experiments[4] = experiment(4, 0.2, "new");
  master.world.trials = {trial(30, 1.5), trial(40, 0.5)};
  master.world.model_defs[3] =
      pack_entries({{"model.cpp", "one\ntwo\n"}, {"gone.txt", "x\n"}, {"same", "s"}}).value();
  master.world.model_defs[4] =
      pack_entries({{"model.cpp", "one\n2\n"}, {"bin", std::string("\0\1", 2)}, {"same", "s"}}).value();
  const auto done = master.det({"experiment", "diff", "3", "4"});
  INFO(done.out << done.err);
  CHECK(done.status.code == 0);
  CHECK(has(done.out, "--- a/model.cpp\n+++ b/model.cpp\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"));
  CHECK(has(done.out, "--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"));
  CHECK(has(done.out, "+++ b/bin\nbinary or large files differ\n"));
  CHECK(!has(done.out, "same"));
  CHECK(has(done.out, " hyperparameters.lr |"));
  CHECK(has(done.out, " environment.image | old"));
  CHECK(has(done.out, " validation.loss |"));
  const auto json = parse_json(master.det({"e", "diff", "3", "4", "--json"}).out);
  REQUIRE(json);
  CHECK((*json)["code"].size() == 3);
  CHECK((*json)["config"] == Json::array({{{"name", "hyperparameters.lr"}, {"a", "0.1"}, {"b", "0.2"}}}));
  CHECK((*json)["metrics"] == Json::array({{{"name", "validation.loss"}, {"a", "1.5"}, {"b", "0.5"}}}));
  CHECK(master.det({"e", "diff", "3", "4", "--name-only"}).out.find("changed model.cpp\n") !=
        std::string::npos);
  CHECK(has(master.det({"e", "diff", "3", "3"}).out, "Code: the same\n"));
  CHECK(master.det({"e", "diff", "3", "9"}).status.code == 1);
}

}  // namespace det::cli::test
