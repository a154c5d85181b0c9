#include "agent/core/core.h"

#include <algorithm>
#include <utility>

#include "common/base/units.h"

namespace det::agent {
namespace {

using std::chrono::seconds;

constexpr Duration kKillMargin = seconds(10);     // a supervisor that has not ended by then is stuck
constexpr Duration kReportOwnExit = seconds(30);  // maximum wait for the log of a task that ended by itself
// Shorter after a stop: no decision of the master depends on that log.
constexpr Duration kReportStoppedExit = seconds(2);
constexpr Duration kFarewell = seconds(5);  // at shutdown, for the master's Forget
// Signals of one request that arrive more than once are at most this far apart.
constexpr Duration kSignalEcho = seconds(3);

void earliest(std::optional<MonoTime>& best, const std::optional<MonoTime>& candidate) {
  if (candidate && (!best || *candidate < *best)) best = candidate;
}

Duration max_log_wait(const std::optional<Exit>& stop) { return stop ? kReportStoppedExit : kReportOwnExit; }

}  // namespace

std::vector<Effect> Core::step(const Input& input, MonoTime now) {
  now_ = now;
  effects_.clear();
  std::visit([this](const auto& value) { handle(value); }, input);
  check_deadlines();
  check_slots();
  check_departure();
  check_stop_request();
  check_shutdown();
  return std::move(effects_);
}

Core::Allocation* Core::find(const AllocationId& id) {
  auto it = allocations_.find(id);
  return it == allocations_.end() ? nullptr : &it->second;
}

void Core::handle(const Start& input) {
  if (const Allocation* known = find(input.id)) return report(input.id, *known);
  // The master soon sees the end of this agent and gives the allocation to another one.
  if (shutting_down_) return;
  Allocation& allocation = allocations_[input.id];
  allocation.slots = input.slots;
  effects_.push_back(Prepare{input.id, input.order});
  report(input.id, allocation);
}

void Core::handle(const Kill& input) {
  Allocation* allocation = find(input.id);
  if (allocation == nullptr) {
    const Exit exit{Exit::Kind::kStopped, 0, "the agent has no such allocation"};
    if (connected_) effects_.push_back(Report{input.id, Phase::kTerminated, exit});
    return;
  }
  if (allocation->phase == Phase::kTerminated) return report(input.id, *allocation);
  stop(input.id, *allocation, {Exit::Kind::kStopped, 0, "killed"});
}

void Core::handle(const Forget& input) {
  Allocation* allocation = find(input.id);
  if (allocation == nullptr) return;
  allocation->forgotten = true;
  // The master has no use for this allocation, so it must not keep running.
  stop(input.id, *allocation, {Exit::Kind::kStopped, 0, "the master has no such allocation"});
  if (allocation->phase == Phase::kTerminated && allocation->shipped) {
    effects_.push_back(Drop{input.id});
    allocations_.erase(input.id);
  }
}

void Core::handle(const Connected& input) {
  lease_ = input.lease;
  grace_ = input.grace;
  heard_ = now_;
  connected_ = true;
  for (auto& [id, allocation] : allocations_) {
    if (allocation.exit && !allocation.reportable)
      allocation.report_at = now_ + max_log_wait(allocation.stop);
    // The state may have changed since Hello was sent.
    report(id, allocation);
  }
  check_number_ = 0;
  report_slots(slots_changed_);
  if (std::exchange(problem_changed_, false)) effects_.push_back(ReportProblem{});
  // The master has forgotten the announcement with the earlier link.
  if (stop_by_ && !shutting_down_) effects_.push_back(Announce{});
}

void Core::handle(const Prepared& input) {
  Allocation* allocation = find(input.id);
  if (allocation == nullptr || allocation->phase != Phase::kPreparing || allocation->launching) return;
  // A stop during the preparation prevents the launch.
  if (allocation->stop) return conclude(input.id, *allocation, *allocation->stop);
  if (input.failure) return conclude(input.id, *allocation, *input.failure);
  allocation->launching = true;
  effects_.push_back(Launch{input.id});
}

void Core::handle(const Launched& input) {
  Allocation* allocation = find(input.id);
  if (allocation == nullptr || !allocation->launching) return;
  allocation->launching = false;
  allocation->phase = input.phase;
  report(input.id, *allocation);
  // A stop during the launch is carried out now.
  if (!allocation->stop) return;
  allocation->kill_at = now_ + grace_ + kKillMargin;
  effects_.push_back(Terminate{input.id, *allocation->stop});
}

void Core::handle(const Ended& input) {
  Allocation* allocation = find(input.id);
  if (allocation == nullptr || allocation->phase == Phase::kTerminated) return;
  // Before the launch only Prepared can end the allocation, so an Ended here is stale.
  if (allocation->phase == Phase::kPreparing && !allocation->launching) return;
  end(input.id, *allocation, input.exit);
}

void Core::end(const AllocationId& id, Allocation& allocation, Exit exit) {
  // A stopped allocation did not end by itself, whatever its exit code.
  if (allocation.stop) exit = {allocation.stop->kind, exit.code, allocation.stop->message};
  conclude(id, allocation, std::move(exit));
}

void Core::handle(const LogsShipped& input) {
  Allocation* allocation = find(input.id);
  if (allocation == nullptr || allocation->phase != Phase::kTerminated) return;
  allocation->shipped = true;
  allocation->report_at.reset();
  if (allocation->forgotten) {
    effects_.push_back(Drop{input.id});
    allocations_.erase(input.id);
    return;
  }
  if (allocation->reportable) return;
  allocation->reportable = true;
  report(input.id, *allocation);
}

void Core::handle(const Found& input) {
  if (find(input.id) != nullptr) return;
  Allocation& allocation = allocations_[input.id];
  allocation.phase = input.phase;
  allocation.stop = input.stop;
  allocation.slots = input.slots;
  if (input.exit) return end(input.id, allocation, *input.exit);
  if (!allocation.stop) return;
  allocation.kill_at = now_ + grace_ + kKillMargin;
  effects_.push_back(Terminate{input.id, *allocation.stop});
}

void Core::report_slots(bool expected) {
  if (!expected) return;
  // Hello may have been sent before the change.
  slots_changed_ = !connected_;
  effects_.push_back(ReportSlots{});
}

void Core::handle(const CheckRequest& input) {
  check_number_ = input.number;
  report_slots(slot_health_.handle(input, now_, busy_slots().contains(input.slot)));
}

void Core::handle(const AgentProblem& input) {
  if (problem_ == input.problem) return;
  problem_ = input.problem;
  // Hello may have been sent before the change.
  if (!connected_) {
    problem_changed_ = true;
  } else {
    effects_.push_back(ReportProblem{});
  }
}

void Core::handle(const StopRequest& input) {
  if (shutting_down_) return;
  if (asked_at_ && input.echoes && now_ < *asked_at_ + kSignalEcho) return;
  if (asked_at_ || input.timeout <= Duration(0)) return handle(ShutDown{});
  asked_at_ = now_;
  begin_stop(now_ + input.timeout);
}

void Core::begin_stop(MonoTime by) {
  if (const auto latest = leave_by()) by = std::min(by, *latest);
  if (!stop_by_ && connected_) effects_.push_back(Announce{});
  stop_by_ = stop_by_ ? std::min(*stop_by_, by) : by;
}

void Core::handle(const ShutDown&) {
  shutting_down_ = true;
  for (auto& [id, allocation] : allocations_) {
    stop(id, allocation, {Exit::Kind::kLost, 0, "the agent was stopped"});
  }
}

void Core::stop(const AllocationId& id, Allocation& allocation, Exit why) {
  if (allocation.stop || allocation.phase == Phase::kTerminated) return;
  allocation.stop = std::move(why);
  if (allocation.launching) return;  // handled by Launched
  if (allocation.phase == Phase::kPreparing) {
    effects_.push_back(CancelPreparation{id});
    return;
  }
  allocation.kill_at = now_ + grace_ + kKillMargin;
  effects_.push_back(Terminate{id, *allocation.stop});
}

void Core::conclude(const AllocationId& id, Allocation& allocation, Exit exit) {
  allocation.before = allocation.phase;
  allocation.phase = Phase::kTerminated;
  allocation.launching = false;
  allocation.kill_at.reset();
  allocation.exit = std::move(exit);
  allocation.report_at = now_ + max_log_wait(allocation.stop);
  effects_.push_back(Conclude{id, *allocation.exit});
}

void Core::report(const AllocationId& id, const Allocation& allocation) {
  if (!connected_) return;
  if (allocation.phase != Phase::kTerminated) {
    effects_.push_back(Report{id, allocation.phase, std::nullopt});
  } else if (allocation.reportable) {
    effects_.push_back(Report{id, Phase::kTerminated, allocation.exit});
  }
}

void Core::check_deadlines() {
  // The lease: after this silence the master gives the allocations to other agents.
  const bool cut_off = now_ >= heard_ + lease_;
  for (auto& [id, allocation] : allocations_) {
    if (cut_off) {
      stop(id, allocation,
           {Exit::Kind::kStopped, 0, "no contact with the master for " + format_duration(lease_)});
    }
    if (allocation.kill_at && now_ >= *allocation.kill_at) {
      // Repeats until the process is gone.
      allocation.kill_at = now_ + kKillMargin;
      effects_.push_back(KillHard{id});
    }
    if (connected_ && allocation.report_at && now_ >= *allocation.report_at) {
      allocation.report_at.reset();
      allocation.reportable = true;
      report(id, allocation);
    }
  }
}

std::set<int> Core::busy_slots() const {
  std::set<int> busy;
  for (const auto& [id, allocation] : allocations_) {
    if (allocation.phase != Phase::kTerminated) busy.insert(allocation.slots.begin(), allocation.slots.end());
  }
  return busy;
}

std::set<int> Core::held_slots() const {
  std::set<int> held;
  for (const auto& [id, allocation] : allocations_)
    held.insert(allocation.slots.begin(), allocation.slots.end());
  return held;
}

void Core::check_slots() {
  if (shutting_down_ || slot_health_.problems().empty()) return;
  for (const int slot : slot_health_.begin_checks(now_, held_slots())) effects_.push_back(RunCheck{slot});
}

std::optional<MonoTime> Core::leave_by() const {
  if (!departure_.until) return std::nullopt;
  return *departure_.until + -(grace_ + kFarewell);
}

std::optional<MonoTime> Core::departs_at() const {
  std::optional<MonoTime> at;
  if (const auto latest = leave_by()) at = *latest + -departure_.stop_timeout;
  if (departure_.idle && idle_since_) earliest(at, *idle_since_ + *departure_.idle);
  return at;
}

void Core::check_departure() {
  if (!allocations_.empty()) {
    idle_since_.reset();
  } else if (!idle_since_) {
    idle_since_ = now_;
  }
  const auto at = departs_at();
  if (at && now_ >= *at && !stop_by_ && !shutting_down_) begin_stop(now_ + departure_.stop_timeout);
}

void Core::check_stop_request() {
  if (!stop_by_ || shutting_down_) return;
  if (all_terminated() || now_ >= *stop_by_) handle(ShutDown{});
}

void Core::check_shutdown() {
  if (!shutting_down_ || finished_ || !all_terminated()) return;
  // Waits for Forget of every allocation, which proves that the master has the exits.
  if (!finish_at_) finish_at_ = now_ + kFarewell;
  if (allocations_.empty() || !connected_ || now_ >= *finish_at_) {
    finished_ = true;
    effects_.push_back(Finish{});
  }
}

bool Core::all_terminated() const {
  return std::all_of(allocations_.begin(), allocations_.end(),
                     [](const auto& entry) { return entry.second.phase == Phase::kTerminated; });
}

std::optional<MonoTime> Core::next_deadline() const {
  std::optional<MonoTime> next = finished_ ? std::nullopt : finish_at_;
  if (!shutting_down_) earliest(next, stop_by_ ? stop_by_ : departs_at());
  bool leased = false;
  for (const auto& [id, allocation] : allocations_) {
    // The lease matters only while something runs.
    leased = leased || (allocation.phase != Phase::kTerminated && !allocation.stop);
    earliest(next, allocation.kill_at);
    if (connected_) earliest(next, allocation.report_at);
  }
  if (leased) earliest(next, heard_ + lease_);
  if (!shutting_down_ && !slot_health_.problems().empty())
    earliest(next, slot_health_.next_check(held_slots()));
  return next;
}

std::vector<Held> Core::held() const {
  std::vector<Held> held;
  for (const auto& [id, allocation] : allocations_) {
    if (allocation.phase != Phase::kTerminated) {
      held.push_back({id, allocation.phase, std::nullopt});
    } else if (allocation.reportable) {
      held.push_back({id, Phase::kTerminated, allocation.exit});
      // The exit is held back until its log is durable or report_at has passed.
    } else {
      held.push_back({id, allocation.before, std::nullopt});
    }
  }
  return held;
}

}  // namespace det::agent
