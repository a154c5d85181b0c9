// Runs policy.case.
#include "master/gc/policy.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "test_paths.h"

namespace det::gc {
namespace {

struct Case {
  std::string title;
  Retention retention;
  std::string expected;
  bool judged = false;
};

void read_line(const std::string& line, Case& into) {
  std::istringstream in(line);
  std::string kind, word;
  in >> kind;
  if (kind == "keep") {
    in >> into.retention.keep.experiment_best >> into.retention.keep.trial_best >>
        into.retention.keep.trial_latest;
    into.retention.keep.smaller_is_better = !(in >> word);
  } else if (kind == "trial") {
    TrialId id;
    in >> id.value;
    into.retention.open.insert(id);
  } else if (kind == "checkpoint") {
    Checkpoint one;
    in >> one.uuid.value >> word >> one.trial.value >> word >> one.steps;
    while (in >> word) {
      if (word == "metric") in >> one.metric.emplace();
      if (word == "damaged") one.damaged = true;
      if (word == "needed") into.retention.needed.insert(one.uuid);
    }
    into.retention.checkpoints.push_back(one);
  } else {
    REQUIRE((kind == "goes" || line == "nothing goes"));
    into.judged = true;
    if (kind == "goes") into.expected = line.substr(5);
  }
}

std::vector<Case> read_cases() {
  std::ifstream file(source_path("/tests/master/gc/policy.case"));
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("case ")) {
      cases.push_back({line.substr(5), {}, "", false});
    } else {
      read_line(line, cases.back());
    }
  }
  return cases;
}

std::string text(const std::vector<CheckpointId>& uuids) {
  std::string out;
  for (const CheckpointId& uuid : uuids) out += (out.empty() ? "" : " ") + uuid.value;
  return out;
}

}  // namespace

TEST_CASE("the policy removes the checkpoints that policy.case expects") {
  const std::vector<Case> cases = read_cases();
  REQUIRE(cases.size() >= 19);
  for (const Case& one : cases) {
    INFO(one.title);
    CHECK(one.judged);
    CHECK(text(superfluous(one.retention)) == one.expected);
  }
}

TEST_CASE("a second pass removes nothing") {
  for (Case one : read_cases()) {
    INFO(one.title);
    const auto gone = superfluous(one.retention);
    std::erase_if(one.retention.checkpoints, [&](const Checkpoint& each) {
      return std::find(gone.begin(), gone.end(), each.uuid) != gone.end();
    });
    CHECK(superfluous(one.retention).empty());
  }
}

}  // namespace det::gc
