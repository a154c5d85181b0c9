// Whole histories. Recorded ones (golden/) must be decided the same way by every version. In random ones, a
// search restored between any two events continues unchanged and always ends.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "configs.h"
#include "test_paths.h"

namespace det::searcher {
namespace {

Searcher restored(const Config& config, const Searcher& searcher) {
  auto again = Searcher::restore(config, nlohmann::json::parse(searcher.snapshot().dump()));
  REQUIRE(again);
  REQUIRE(again->snapshot() == searcher.snapshot());
  return std::move(*again);
}

/// Hostile events: late, repeated and unknown reports, NaN, ties, every kind of exit, extensions and retries.
class World {
 public:
  explicit World(std::uint64_t seed) : random_{seed, 0} {}

  Event next() {
    switch (random_.below(16)) {
      case 0:
        return Exited{any(), ExitReason::kErrored};
      case 1:
        return Exited{any(), ExitReason::kCanceled};
      case 2:
        return Exited{any(), ExitReason::kInvalidHp};
      case 3:
        return Retried{any(), random_.below(2) == 0};
      case 4:
        return Started{};
      case 5:
        return extended();
      case 6:
      case 7:
      case 8:
        return Exited{any(), ExitReason::kCompleted};
      default:
        break;
    }
    const double metric = random_.below(8) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                : static_cast<double>(random_.below(20)) / 10;
    const double time = static_cast<double>(random_.below(12) * 10);
    return Validated{any(), static_cast<std::int64_t>(time), metric, time};
  }
  /// The cooperative event: an open trial completes.
  Event finish(TrialNumber trial) { return Exited{trial, ExitReason::kCompleted}; }
  void heard(const std::vector<Action>& actions) {
    for (const Action& action : actions) trials_ += std::holds_alternative<Create>(action);
  }

 private:
  TrialNumber any() { return static_cast<TrialNumber>(random_.below(trials_ + 2)); }
  Event extended() {
    if (random_.below(8) != 0) return Extended{std::nullopt, std::nullopt};
    if (random_.below(2) == 0)
      return Extended{20 + static_cast<std::int64_t>(random_.below(10)), std::nullopt};
    return Extended{std::nullopt, 90 + static_cast<std::int64_t>(random_.below(400)), {any(), any()}};
  }
  Random random_;
  std::uint64_t trials_ = 0;
};

TEST_CASE("a search restored between any two events continues unchanged") {
  for (const std::string& name : every_search()) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      INFO(name << " seed " << seed);
      const auto config = make_config(name);
      Searcher searcher = std::move(*Searcher::create(config));
      World world(seed);
      for (int i = 0; i < 150; ++i) {
        const Event event = i == 0 ? Event{Started{}} : world.next();
        Searcher again = restored(config, searcher);
        const auto actions = searcher.handle(event);
        REQUIRE(show(*config, again.handle(event)) == show(*config, actions));
        REQUIRE(again.snapshot() == searcher.snapshot());
        world.heard(actions);
      }
    }
  }
}

TEST_CASE("a search ends once its trials end, and its actions match the states of its trials") {
  enum class State { kRunning, kStopping, kHeld, kClosed };
  for (const std::string& name : every_search()) {
    for (std::uint64_t seed = 100; seed < 130; ++seed) {
      INFO(name << " seed " << seed);
      const auto config = make_config(name);
      Searcher searcher = std::move(*Searcher::create(config));
      World world(seed);
      std::vector<State> trials;
      bool over = false;
      auto tell = [&](const Event& event) {
        const bool may = searcher.check(event).has_value();
        if (auto* exited = std::get_if<Exited>(&event); exited && exited->trial < trials.size())
          trials[exited->trial] = State::kClosed;
        const auto actions = searcher.handle(event);
        if (may && (std::holds_alternative<Extended>(event) || std::holds_alternative<Retried>(event)))
          over = false;
        for (const Action& action : actions) {
          REQUIRE_FALSE(over);
          if (auto* create = std::get_if<Create>(&action)) {
            REQUIRE(create->trial == trials.size());
            trials.push_back(State::kRunning);
          } else if (auto* stop = std::get_if<Stop>(&action)) {
            REQUIRE((trials.at(stop->trial) == State::kRunning || trials.at(stop->trial) == State::kHeld));
            trials[stop->trial] = State::kStopping;
          } else if (auto* hold = std::get_if<Hold>(&action)) {
            REQUIRE(trials.at(hold->trial) == State::kRunning);
            trials[hold->trial] = State::kHeld;
          } else if (auto* resume = std::get_if<Resume>(&action)) {
            REQUIRE((trials.at(resume->trial) == State::kHeld || trials.at(resume->trial) == State::kClosed));
            trials[resume->trial] = State::kRunning;
          } else {
            over = true;
            for (State state : trials) REQUIRE(state == State::kClosed);
          }
        }
        world.heard(actions);
      };
      tell(Started{});
      for (int i = 0; i < 100; ++i) tell(world.next());
      for (int rounds = 0; !over; ++rounds) {
        REQUIRE(rounds < 10000);
        bool moved = false;
        for (TrialNumber trial = 0; trial < trials.size(); ++trial) {
          if (trials[trial] != State::kRunning && trials[trial] != State::kStopping) continue;
          tell(world.finish(trial));
          moved = true;
        }
        // Held trials alone would never end.
        REQUIRE((moved || over));
      }
    }
  }
}

/// Records the history of a search, for DET_RECORD below.
void record(const std::string& path, const Config& config) {
  std::ofstream file(path);
  Searcher searcher = std::move(*Searcher::create(config));
  World world(42);
  for (int i = 0; i < 120; ++i) {
    const Event event = i == 0 ? Event{Started{}} : world.next();
    const auto actions = searcher.handle(event);
    world.heard(actions);
    file << to_json(event).dump() << '\t' << show(*config, actions).dump() << '\n';
  }
}

TEST_CASE("a recorded history is decided the same way again") {
  for (const std::string& name : every_search()) {
    const auto config = make_config(name);
    const std::string path = source_path("/tests/master/searcher/golden/") + name + ".history";
    if (std::getenv("DET_RECORD") != nullptr && !std::ifstream(path)) record(path, config);
    std::ifstream file(path);
    REQUIRE(file);
    Searcher searcher = std::move(*Searcher::create(config));
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      INFO(name << " line " << ++number);
      const auto tab = line.find('\t');
      auto event = event_from_json(nlohmann::json::parse(line.substr(0, tab)));
      REQUIRE(event);
      REQUIRE(show(*config, searcher.handle(*event)).dump() == line.substr(tab + 1));
    }
    REQUIRE(number == 120);
  }
}

}  // namespace
}  // namespace det::searcher
