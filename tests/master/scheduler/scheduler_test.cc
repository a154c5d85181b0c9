// Runs the scheduler's .case files: a cluster, a queue, and the expected decision.
//
//   case <title>
//   pool [policy priority|fair_share|round_robin] [preemption off] [holders <n>] [weight <user>=<w>,…]
//   agent <id> <slots> [closed] [disabled <a,b>] [links <group of each slot>] [zero <max zero-slot>]
//   job <id> [user <u>] [priority <p>] [position <t>] [weight <w>] [max_slots <n>] [workspace <w>]
//   quota user|workspace <id> slots <n> [elsewhere <n>]
//   running <trial> [of <job>] on <agent[:a,b]>… [terminating] [fixed]
//   request <trial> [of <job>] slots <n> [single] [fixed] [excluded <agent,…>]
// Job keys on a running or request line apply to its job. Without `of` the job has the trial's number.
//   start <trial> on <agent:slots>… | preempt <trial> | nothing        expected, in order
//   hold <trial> coming|preempting|reserved [on <agent>] slots <n>    checked when a block has one
//   then <any of the first lines>                                      changes the pool after a decision
//   then ended|terminating|withdraw|forget <id> | then gone <agent>        the same
//   explain <trial> [recent <seconds,…>] [age <trial>=<seconds>]       after the decision; `| line` follows
//   shape <pool> <slots of each agent>                                 a pool for `fits`
//   fits <pool> <slots> [single]                                       `| message` or `| yes` follows
// Lines after a `then` expect the next decision.
#include "master/scheduler/scheduler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "common/base/text.h"
#include "master/scheduler/explain.h"
#include "master/scheduler/fits.h"
#include "reference.h"
#include "test_paths.h"

namespace det::scheduler {
namespace {

std::vector<int> read_numbers(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) numbers.push_back(std::stoi(part));
  return numbers;
}

/// The words of a line: "key value" pairs, flags, and the agents after `on`.
struct Words {
  std::map<std::string, std::string> values;
  std::vector<Part> parts;

  explicit Words(std::istringstream& in) {
    bool places = false;
    for (std::string word; in >> word;) {
      const bool flag = word == "terminating" || word == "fixed" || word == "closed" || word == "single";
      const bool known = flag || word == "of" || word == "slots" || word == "user" || word == "priority" ||
                         word == "position" || word == "weight" || word == "max_slots" ||
                         word == "workspace" || word == "elsewhere" || word == "excluded";
      if (places && !known) {
        const auto colon = word.find(':');
        parts.push_back({AgentId(word.substr(0, colon)), {}});
        if (colon != std::string::npos) parts.back().slots = read_numbers(word.substr(colon + 1));
      } else if (word == "on") {
        places = true;
      } else if (flag) {
        values[word];
      } else {
        in >> values[word];
      }
    }
  }
  bool has(const std::string& key) const { return values.contains(key); }
  std::string text(const std::string& key) const { return values.at(key); }
  int number(const std::string& key, int otherwise) const {
    return has(key) ? std::stoi(values.at(key)) : otherwise;
  }
};

class Play {
 public:
  void line(const std::string& text) {
    std::istringstream in(text);
    std::string kind;
    in >> kind;
    if (kind == "then") {
      settle();
      in >> kind;
      change(kind, in);
      return;
    }
    if (kind == "explain" || kind == "fits") {
      settle();
      asked_ = kind == "explain" ? explained(in) : fitting(in);
      asking_ = true;
      return;
    }
    if (kind == "|") {
      expected_ += (text.size() > 2 ? text.substr(2) : "") + "\n";
      return;
    }
    if (kind == "start" || kind == "preempt" || kind == "nothing" || kind == "hold") {
      expecting_ = true;
      if (kind != "nothing") expected_ += text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
      holds_ = holds_ || kind == "hold";
      return;
    }
    change(kind, in);
  }
  void settle() {
    if (std::exchange(asking_, false)) CHECK(asked_ == std::exchange(expected_, ""));
    if (!std::exchange(expecting_, false)) return;
    const Plan plan = scheduler_.decide();
    std::string got = show(plan);
    if (std::exchange(holds_, false)) got += show(scheduler_.holds());
    CHECK(got == std::exchange(expected_, ""));
    CHECK(show(scheduler_.decide()) == "");
  }

 private:
  void change(const std::string& kind, std::istringstream& in) {
    std::string name, text;
    if (kind != "pool") in >> name;
    if (kind == "agent") return agent(name, in);
    if (kind == "shape") {
      in >> text;
      shapes_.push_back({name, read_numbers(text)});
      return;
    }
    if (kind == "quota") return quota(name, in);
    if (kind == "gone") return scheduler_.remove_agent(AgentId(name));
    const Words words(in);
    if (kind == "pool") return pool(words);
    const std::int64_t id = std::stoll(name);
    if (kind == "ended") return scheduler_.ended(TrialId(id));
    if (kind == "terminating") return scheduler_.terminating(TrialId(id));
    if (kind == "withdraw") return scheduler_.withdraw(TrialId(id));
    if (kind == "forget") return scheduler_.remove_job(ExperimentId(id));
    if (kind == "job") return job(id, words);
    const ExperimentId of(words.has("of") ? std::stoll(words.text("of")) : id);
    job(of.value, words);
    if (kind == "request") {
      std::vector<AgentId> excluded;
      if (words.has("excluded"))
        for (const std::string& agent : split(words.text("excluded"), ',')) excluded.emplace_back(agent);
      return scheduler_.put_request({TrialId(id), of, words.number("slots", 1), words.has("single"),
                                     !words.has("fixed"), std::move(excluded)});
    }
    REQUIRE(kind == "running");
    scheduler_.started({TrialId(id), of, words.parts, !words.has("fixed"), words.has("terminating")});
  }
  std::string explained(std::istringstream& in) {
    std::int64_t trial = 0;
    in >> trial;
    const Words words(in);
    RunLengths lengths;
    if (words.has("recent")) {
      for (int seconds : read_numbers(words.text("recent"))) lengths.recent.push_back(seconds);
    }
    if (words.has("age")) {
      const std::string age = words.text("age");
      lengths.age[TrialId(std::stoll(age))] = std::stod(age.substr(age.find('=') + 1));
    }
    if (words.has("progress")) {
      const std::string progress = words.text("progress");
      lengths.progress[TrialId(std::stoll(progress))] = std::stod(progress.substr(progress.find('=') + 1));
    }
    scheduler_.decide();
    return to_text(explain(scheduler_.snapshot(), TrialId(trial), lengths));
  }
  std::string fitting(std::istringstream& in) {
    std::string pool;
    int slots = 0;
    in >> pool >> slots;
    const Status status = fits(shapes_, pool, slots, Words(in).has("single"));
    return (status ? "yes" : status.error().message) + "\n";
  }
  void pool(const Words& words) {
    Rules rules = scheduler_.snapshot().rules;
    if (words.has("policy")) {
      const std::string policy = words.text("policy");
      REQUIRE((policy == "priority" || policy == "fair_share" || policy == "round_robin"));
      rules.policy = policy == "fair_share"    ? Policy::kFairShare
                     : policy == "round_robin" ? Policy::kRoundRobin
                                               : Policy::kPriority;
    }
    if (words.has("preemption")) rules.preemption = words.text("preemption") != "off";
    rules.holders = words.number("holders", rules.holders);
    if (words.has("weight")) {
      std::istringstream all(words.text("weight"));
      for (std::string weight; std::getline(all, weight, ',');) {
        const auto equals = weight.find('=');
        rules.user_weights[UserId(std::stoll(weight.substr(0, equals)))] =
            std::stod(weight.substr(equals + 1));
      }
    }
    Snapshot all = scheduler_.snapshot();
    all.rules = std::move(rules);
    scheduler_ = Scheduler(all);
  }
  void quota(const std::string& scope, std::istringstream& in) {
    REQUIRE((scope == "user" || scope == "workspace"));
    std::int64_t id = 0;
    in >> id;
    const Words words(in);
    const QuotaKey key{scope == "user" ? QuotaKey::Scope::kUser : QuotaKey::Scope::kWorkspace, id};
    if (!words.has("slots")) return scheduler_.remove_quota(key);
    scheduler_.put_quota({key, words.number("slots", 0), words.number("elsewhere", 0)});
  }
  void agent(const std::string& name, std::istringstream& in) {
    std::size_t slots = 0;
    in >> slots;
    const Words words(in);
    Agent agent{.id = AgentId(name), .slots = std::vector<Slot>(slots), .open = !words.has("closed")};
    if (words.has("disabled")) {
      for (int slot : read_numbers(words.text("disabled")))
        agent.slots.at(static_cast<std::size_t>(slot)).enabled = false;
    }
    if (words.has("links")) {
      const auto links = read_numbers(words.text("links"));
      for (std::size_t i = 0; i < slots; ++i) agent.slots[i].link = links.at(i);
    }
    agent.max_zero_slot = words.number("zero", agent.max_zero_slot);
    scheduler_.put_agent(std::move(agent));
  }
  void job(std::int64_t id, const Words& words) {
    Job& job = jobs_[id];
    job.id = ExperimentId(id);
    job.user = UserId(words.number("user", static_cast<int>(job.user.value)));
    job.priority = words.number("priority", job.priority);
    job.position = words.number("position", static_cast<int>(job.position));
    if (words.has("weight")) job.weight = std::stod(words.text("weight"));
    if (words.has("max_slots")) job.max_slots = words.number("max_slots", 0);
    job.workspace = words.number("workspace", static_cast<int>(job.workspace));
    scheduler_.put_job(job);
  }

  Scheduler scheduler_;
  std::map<std::int64_t, Job> jobs_;
  std::vector<PoolShape> shapes_;
  std::string expected_, asked_;
  bool asking_ = false;
  bool expecting_ = false, holds_ = false;
};

TEST_CASE("the scheduler decides as the case files expect") {
  std::size_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_path("/tests/master/scheduler"))) {
    if (file.path().extension() != ".case") continue;
    std::ifstream in(file.path());
    std::string name;
    std::vector<std::string> lines;
    auto play = [&] {
      if (name.empty()) return;
      INFO(file.path().filename().string() << ": " << name);
      Play one;
      for (const std::string& line : lines) one.line(line);
      one.settle();
      lines.clear();
      ++count;
    };
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      if (!line.starts_with("case ")) {
        lines.push_back(line);
        continue;
      }
      play();
      name = line.substr(5);
    }
    play();
  }
  REQUIRE(count >= 100);
}

}  // namespace
}  // namespace det::scheduler
