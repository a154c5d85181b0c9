// Owns the reader of the scheduler's .case files, and the properties that hold for any snapshot.
//
//   case <what it shows>
//   agent <id> <slots> [away]
//   running <allocation> on <agent> slots <a,b> priority <p> submitted <t> [leaving] [fixed]
//   request <trial> slots <n> [priority <p>] [submitted <t>]
//   start <trial> on <agent> [slots <a,b>]         what is expected, in order; a case without any expects
//   nothing preempt <allocation>
#include "master/scheduler/scheduler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/random.h"

namespace det::scheduler {
namespace {

struct Case {
  std::string name;
  Snapshot snapshot;
  std::string expected;
};

std::vector<int> read_slots(const std::string& text) {
  std::vector<int> slots;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) slots.push_back(std::stoi(part));
  return slots;
}

/// "key value" pairs after the fixed words, and lone flags with an empty value.
std::map<std::string, std::string> read_rest(std::istringstream& in) {
  std::map<std::string, std::string> rest;
  for (std::string word; in >> word;) {
    if (word == "leaving" || word == "fixed" || word == "away") {
      rest[word];
    } else {
      in >> rest[word];
    }
  }
  return rest;
}

void read_line(const std::string& line, Case& out) {
  std::istringstream in(line);
  std::string kind, name;
  in >> kind >> name;
  if (kind == "start" || kind == "preempt") {
    out.expected += line + "\n";
    return;
  }
  if (kind == "agent") {
    int slots = 0;
    in >> slots;
    AgentView agent{.id = AgentId(name)};
    agent.slot_free.assign(static_cast<std::size_t>(slots), true);
    agent.schedulable = !read_rest(in).contains("away");
    out.snapshot.agents.push_back(std::move(agent));
    return;
  }
  auto rest = read_rest(in);
  Claim claim;
  if (rest.contains("priority")) claim.priority = std::stoi(rest["priority"]);
  if (rest.contains("submitted")) claim.submitted = std::stoll(rest["submitted"]);
  if (kind == "request") {
    claim.trial = std::stoll(name);
    out.snapshot.requests.push_back({TrialId(claim.trial), claim, std::stoi(rest.at("slots"))});
    return;
  }
  REQUIRE(kind == "running");
  Running running{.allocation = AllocationId(name), .claim = claim, .agent = AgentId(rest.at("on"))};
  running.slots = read_slots(rest["slots"]);
  running.preemptible = !rest.contains("fixed");
  running.leaving = rest.contains("leaving");
  for (AgentView& agent : out.snapshot.agents) {
    if (agent.id != running.agent) continue;
    for (int slot : running.slots) agent.slot_free.at(static_cast<std::size_t>(slot)) = false;
  }
  out.snapshot.running.push_back(std::move(running));
}

std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::vector<Case> cases;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("case ")) {
      cases.push_back({line.substr(5), {}, {}});
    } else {
      INFO(path << ": " << line);
      REQUIRE_FALSE(cases.empty());
      read_line(line, cases.back());
    }
  }
  return cases;
}

std::string show(const Plan& plan) {
  std::string text;
  for (const Placement& start : plan.start) {
    text += "start " + std::to_string(start.trial.value) + " on " + start.agent.value;
    for (std::size_t i = 0; i < start.slots.size(); ++i) {
      text += (i == 0 ? " slots " : ",") + std::to_string(start.slots[i]);
    }
    text += "\n";
  }
  for (const AllocationId& id : plan.preempt) text += "preempt " + id.value + "\n";
  return text;
}

TEST_CASE("the scheduler does what the case files say") {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(DET_SOURCE_DIR "/tests/master/scheduler")) {
    if (file.path().extension() != ".case") continue;
    for (const Case& one : read_cases(file.path())) {
      INFO(file.path().filename().string() << ": " << one.name);
      CHECK(show(schedule(one.snapshot)) == one.expected);
      ++count;
    }
  }
  REQUIRE(count >= 20);
}

Snapshot random_snapshot(Random& random) {
  Snapshot snapshot;
  auto claim = [&](std::int64_t id) {
    return Claim{static_cast<int>(40 + random.below(4)), static_cast<std::int64_t>(random.below(5)), id};
  };
  const auto agents = random.below(5);
  std::int64_t id = 1;
  for (std::uint64_t a = 0; a < agents; ++a) {
    AgentView agent{.id = AgentId("a" + std::to_string(a))};
    agent.slot_free.assign(random.below(9), true);
    agent.schedulable = random.below(5) != 0;
    for (std::size_t slot = 0; slot < agent.slot_free.size();) {
      const std::size_t size = 1 + random.below(4);
      if (random.below(2) == 0 || slot + size > agent.slot_free.size()) {
        ++slot;
        continue;
      }
      Running running{AllocationId("r" + std::to_string(id)),
                      claim(id),
                      agent.id,
                      {},
                      random.below(5) != 0,
                      random.below(4) == 0};
      ++id;
      for (std::size_t i = 0; i < size; ++i) {
        running.slots.push_back(static_cast<int>(slot));
        agent.slot_free[slot++] = false;
      }
      snapshot.running.push_back(std::move(running));
    }
    snapshot.agents.push_back(std::move(agent));
  }
  for (auto n = random.below(12); n > 0; --n, ++id) {
    snapshot.requests.push_back({TrialId(id), claim(id), static_cast<int>(random.below(6))});
  }
  return snapshot;
}

void check_starts(const Snapshot& snapshot, const Plan& plan) {
  std::map<AgentId, std::vector<bool>> free;
  for (const AgentView& agent : snapshot.agents) {
    if (agent.schedulable) free[agent.id] = agent.slot_free;
  }
  std::set<TrialId> started;
  for (const Placement& start : plan.start) {
    REQUIRE(started.insert(start.trial).second);
    auto request = std::find_if(snapshot.requests.begin(), snapshot.requests.end(),
                                [&](const Request& r) { return r.trial == start.trial; });
    REQUIRE(request != snapshot.requests.end());
    REQUIRE(start.slots.size() == static_cast<std::size_t>(request->slots));
    REQUIRE(free.contains(start.agent));
    for (int slot : start.slots) {
      auto is_free = free[start.agent].at(static_cast<std::size_t>(slot));
      REQUIRE(is_free);
      is_free = false;
    }
  }
}

TEST_CASE("no plan gives a slot twice or asks the wrong one to leave") {
  Random random{17, 0};
  for (int round = 0; round < 5000; ++round) {
    const Snapshot snapshot = random_snapshot(random);
    const Plan plan = schedule(snapshot);
    check_starts(snapshot, plan);
    int least = 100;
    for (const Request& request : snapshot.requests) least = std::min(least, request.claim.priority);
    std::set<AllocationId> asked;
    for (const AllocationId& id : plan.preempt) {
      REQUIRE(asked.insert(id).second);
      auto victim = std::find_if(snapshot.running.begin(), snapshot.running.end(),
                                 [&](const Running& r) { return r.allocation == id; });
      REQUIRE(victim != snapshot.running.end());
      REQUIRE(victim->preemptible);
      REQUIRE_FALSE(victim->leaving);
      REQUIRE(victim->claim.priority > least);
    }
    REQUIRE(show(schedule(snapshot)) == show(plan));
  }
}

}  // namespace
}  // namespace det::scheduler
