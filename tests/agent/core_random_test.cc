// Property test of the agent's core: thousands of random histories with lost, late and repeated inputs. The
// invariants are checked after each step. A failure prints its seed.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "agent/core/core.h"
#include "common/base/random.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

/// Simulated environment of a core: performs its effects with random delays and checks the invariants.
struct Play {
  explicit Play(std::uint64_t seed) : random{seed} {}

  void step(const Input& input) {
    for (const Effect& effect : core.step(input, now))
      std::visit([this](const auto& e) { perform(e); }, effect);
  }
  void perform(const Prepare& e) {
    CHECK(prepared.insert(e.id).second);
    preparing.insert(e.id);
  }
  void perform(const CancelPreparation& e) { CHECK(prepared.contains(e.id)); }
  void perform(const Launch& e) {
    CHECK_FALSE(preparing.contains(e.id));
    CHECK(launched.insert(e.id).second);
    CHECK_FALSE(alive.contains(e.id));
    launching.insert(e.id);
  }
  void perform(const Terminate& e) {
    CHECK(alive.contains(e.id));
    CHECK_FALSE(concluded.contains(e.id));
  }
  void perform(const KillHard& e) { CHECK(alive.contains(e.id)); }
  void perform(const Conclude& e) {
    CHECK_FALSE(alive.contains(e.id));
    CHECK_FALSE(preparing.contains(e.id));
    CHECK(concluded.emplace(e.id, e.exit).second);
  }
  void perform(const Report& e) {
    CHECK(connected);
    if (e.phase != Phase::kTerminated) {
      CHECK_FALSE(concluded.contains(e.id));
      return;
    }
    REQUIRE(e.exit);
    if (prepared.contains(e.id) && !dropped.contains(e.id)) CHECK(concluded.at(e.id) == *e.exit);
    told.insert(e.id);
  }
  void perform(const Drop& e) {
    CHECK(forgotten.contains(e.id));
    CHECK(concluded.contains(e.id));
    CHECK(dropped.insert(e.id).second);
  }
  void perform(const RunCheck& e) {
    CHECK(checking.insert(e.slot).second);
    for (const AllocationId& id : prepared) CHECK((concluded.contains(id) || slots_of(id).empty()));
  }
  void perform(const ReportSlots&) {}
  void perform(const ReportProblem&) { CHECK(connected); }
  void perform(const Announce&) { CHECK(connected); }
  void perform(const Finish&) {
    CHECK(alive.empty());
    ++finished;
  }

  /// Half of the allocations have slot 0.
  static std::vector<int> slots_of(const AllocationId& id) {
    return (id.value.back() - '0') % 2 == 0 ? std::vector{0} : std::vector<int>();
  }
  AllocationId any() { return AllocationId("1.t." + std::to_string(random.below(6))); }
  template <typename Set>
  std::optional<AllocationId> one_of(const Set& set) {
    if (set.empty()) return std::nullopt;
    auto it = set.begin();
    std::advance(it, static_cast<long>(random.below(set.size())));
    return *it;
  }

  void random_move() {
    switch (random.below(14)) {
      case 0:
      case 1: {
        const AllocationId id = any();
        if (!dropped.contains(id))
          step(Start{id, nullptr, slots_of(id)});  // each run number is started at most once
        break;
      }
      case 2:
        step(Kill{any()});
        break;
      case 3:
        if (auto id = one_of(told)) {
          forgotten.insert(*id);
          step(Forget{*id});
        }
        break;
      case 4:
        connected = true;
        step(Connected{60s, 5s});
        break;
      case 5:
        connected = false;
        step(Disconnected{});
        break;
      case 6:
      case 7:
        finish_preparation();
        break;
      case 8:
        finish_launch();
        break;
      case 9:
        end_process();
        break;
      case 10:
        if (auto id = any(); concluded.contains(id)) step(LogsShipped{id});
        break;
      case 11:
        if (random.below(3) == 0) return step(AgentProblem{random.below(2) == 0 ? "" : "the disk is full"});
        step(random.below(2) == 0 ? Input(DeviceFault{0, "Xid 79"}) : Input(CheckRequest{0, 1}));
        break;
      case 12:
        if (checking.erase(0) > 0) step(CheckDone{0, random.below(2) == 0 ? "" : "failed"});
        break;
      default:
        now = now + Duration(static_cast<std::int64_t>(random.below(40'000'000)));
        step(Tick{});
    }
  }
  void finish_preparation() {
    auto id = one_of(preparing);
    if (!id) return step(Prepared{any(), {}});  // a late duplicate
    preparing.erase(*id);
    step(Prepared{*id,
                  random.below(4) == 0 ? std::optional(Exit{Exit::Kind::kFailed, 1, "no"}) : std::nullopt});
  }
  void finish_launch() {
    auto id = one_of(launching);
    if (!id) return;
    launching.erase(*id);
    if (random.below(8) == 0) return step(Ended{*id, {Exit::Kind::kLost, 0, "no supervisor"}});
    alive.insert(*id);
    step(Launched{*id, Phase::kStarting});
  }
  void end_process() {
    auto id = one_of(alive);
    if (!id) return;
    alive.erase(*id);
    step(Ended{*id, {Exit::Kind::kSucceeded, 0, ""}});
  }

  Random random;
  MonoTime now{1};
  Core core{60s, now, {.until = now + 40min, .stop_timeout = 30s, .idle = 10min}};
  bool connected = false;
  int finished = 0;
  std::set<AllocationId> prepared, preparing, launched, launching, alive, told, forgotten, dropped;
  std::map<AllocationId, Exit> concluded;
  std::set<int> checking;
};

}  // namespace

TEST_CASE("random histories keep the core's invariants, and every shutdown completes", "[core][random]") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    Play play(seed);
    for (int i = 0; i < 120; ++i) play.random_move();
    if (seed % 2 == 0) play.step(StopRequest{60s, seed % 4 == 0});
    play.step(ShutDown{});
    for (int i = 0; i < 40; ++i) {
      play.finish_preparation();
      play.finish_launch();
      play.end_process();
    }
    CHECK(play.alive.empty());
    for (const AllocationId& id : play.prepared) CHECK(play.concluded.contains(id));
    play.now = play.now + 10s;
    play.step(Tick{});
    CHECK(play.finished == 1);
  }
}
