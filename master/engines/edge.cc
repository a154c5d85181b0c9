#include "master/engines/edge.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "master/engines/kubernetes/engine.h"
#include "master/engines/slurm.h"
#include "master/engines/slurm_rest.h"

namespace det::engines {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
/// Rounds after which unchanged states are reported again: the core cancels leftover jobs on each report.
constexpr int kReportAgain = 30;
constexpr std::size_t kBatch = 1024;
/// A message does not wait for the next round, unless earlier requests have moved that one further away than
/// this, or the newest list is older than this.
constexpr auto kMaxAhead = std::chrono::seconds(3);

using core::PilotPhase;

}  // namespace

Round::Round(std::set<std::string> pools, std::string prefix, std::unique_ptr<Engine> engine, CoreLink core)
    : pools_(std::move(pools)),
      prefix_(std::move(prefix)),
      engine_(std::move(engine)),
      core_(std::move(core)) {}

std::string Round::pool_of(const std::string& name) const {
  if (!name.starts_with(prefix_)) return "";
  const std::size_t end = name.rfind('-');
  if (end <= prefix_.size()) return "";
  const std::string pool = name.substr(prefix_.size(), end - prefix_.size());
  return pools_.contains(pool) ? pool : "";
}

void Round::set_problem(const std::string& problem) {
  if (problem == std::exchange(problem_, problem)) return;
  if (problem.empty()) {
    log::info(engine_->name() + " replies again");
  } else {
    log::warn(engine_->name() + " does not reply", {{"reason", problem}});
  }
  for (const std::string& pool : pools_) core_.submit(core::ProviderState{pool, problem});
}

bool Round::is_submission(const core::Send& message) const {
  auto* pilot = std::get_if<core::SubmitPilot>(&message);
  return pilot && pools_.contains(pilot->pool);
}

bool Round::is_cancellation(const core::Send& message) const {
  auto* pilot = std::get_if<core::CancelPilot>(&message);
  return pilot && pools_.contains(pilot->pool);
}

bool Round::has_live_job(const std::string& pilot) const {
  const auto jobs = jobs_.find(pilot);
  return jobs != jobs_.end() &&
         std::any_of(jobs->second.begin(), jobs->second.end(),
                     [](const EngineJob& job) { return job.phase != PilotPhase::kEnded; });
}

Duration Round::run_early(std::vector<core::Send>& messages) {
  if (rounds_ == 0 || !problem_.empty()) return Duration(0);
  std::vector<core::CancelPilot> unwanted;
  std::erase_if(messages, [&](const core::Send& message) {
    if (is_submission(message)) {
      enqueue(std::get<core::SubmitPilot>(message));
    } else if (is_cancellation(message) && has_live_job(std::get<core::CancelPilot>(message).name)) {
      unwanted.push_back(std::get<core::CancelPilot>(message));
    } else {
      return false;
    }
    return true;
  });
  cancel(unwanted);
  submit_waiting();
  return kTick * engine_->take_requests();
}

Duration Round::run(const std::vector<core::Send>& messages) {
  if (list()) {
    std::vector<core::CancelPilot> unwanted;
    for (const core::Send& message : messages) {
      if (is_submission(message)) enqueue(std::get<core::SubmitPilot>(message));
      if (is_cancellation(message)) unwanted.push_back(std::get<core::CancelPilot>(message));
    }
    cancel(unwanted);
    submit_waiting();
  } else {
    waiting_.clear();
  }
  return kTick * std::max(1, engine_->take_requests());
}

bool Round::list() {
  // Read before the list: a pilot that is confirmed now must be in the list.
  const auto known = core_.pilots();
  auto listed = engine_->list();
  if (!listed) {
    set_problem(listed.error().message);
    return false;
  }
  recovers_ = !problem_.empty();
  set_problem("");
  jobs_.clear();
  for (EngineJob& job : *listed) {
    if (pool_of(job.name).empty()) continue;
    std::string name = job.name;
    jobs_[name].push_back(std::move(job));
  }
  cancel_twins();
  if (++rounds_ % kReportAgain == 0) reported_.clear();
  for (const auto& [name, jobs] : jobs_) report(jobs.front());
  if (known) report_missing(*known);
  std::erase_if(reported_, [this](const auto& one) { return !jobs_.contains(one.first); });
  return true;
}

void Round::cancel_twins() {
  for (auto& [name, jobs] : jobs_) {
    // The live job that runs or was submitted first represents the pilot.
    std::stable_sort(jobs.begin(), jobs.end(), [](const EngineJob& a, const EngineJob& b) {
      const auto rank = [](const EngineJob& job) {
        return job.phase == PilotPhase::kRunning ? 0 : job.phase == PilotPhase::kPending ? 1 : 2;
      };
      return std::pair(rank(a), a.id.size()) < std::pair(rank(b), b.id.size()) ||
             (rank(a) == rank(b) && a.id.size() == b.id.size() && a.id < b.id);
    });
    std::vector<std::string> twins;
    for (auto job = jobs.begin() + 1; job != jobs.end(); ++job) {
      if (job->phase != PilotPhase::kEnded) twins.push_back(job->id);
    }
    if (twins.empty()) continue;
    log::warn("a pilot was submitted twice; the later job is canceled", {{"pilot", name}});
    if (const Status done = engine_->cancel(twins); !done) set_problem(done.error().message);
  }
}

void Round::report(const EngineJob& job) {
  const auto before = reported_.find(job.name);
  if (before != reported_.end() && before->second == job) return;
  reported_.insert_or_assign(job.name, job);
  core_.submit(core::PilotState{.pool = pool_of(job.name),
                                .name = job.name,
                                .phase = job.phase,
                                .job = job.id,
                                .reason = job.reason,
                                .until = job.until});
}

void Round::report_missing(const std::map<std::string, core::Pilot>& known) {
  for (const auto& [name, pilot] : known) {
    // A pilot without a job has not been confirmed: its submission or cancellation is repeated.
    if (pilot.job.empty() || jobs_.contains(name)) continue;
    core_.submit(
        core::PilotState{.pool = pilot.pool,
                         .name = name,
                         .phase = PilotPhase::kEnded,
                         .job = pilot.job,
                         .reason = engine_->name() + " does not list job " + pilot.job + " any more"});
  }
}

void Round::enqueue(const core::SubmitPilot& pilot) {
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const core::SubmitPilot& other) { return other.name == pilot.name; });
  if (!waits) waiting_.push_back(pilot);
}

void Round::submit_waiting() {
  if (recovers_) return;
  for (std::size_t i = 0; i < kMaxSubmissions && !waiting_.empty(); ++i) {
    const core::SubmitPilot pilot = std::move(waiting_.front());
    waiting_.pop_front();
    if (!submit(pilot)) return waiting_.clear();
  }
}

bool Round::submit(const core::SubmitPilot& pilot) {
  if (const auto there = jobs_.find(pilot.name); there != jobs_.end()) {
    reported_.erase(pilot.name);
    report(there->second.front());
    return true;
  }
  const auto id = engine_->submit(pilot);
  if (!id && id.error().code == Code::kUnavailable) {
    set_problem(id.error().message);
    return false;
  }
  if (!id) {
    log::warn(engine_->name() + " refused a pilot", {{"pilot", pilot.name}, {"reason", id.error().message}});
    core_.submit(core::PilotState{
        .pool = pilot.pool, .name = pilot.name, .phase = PilotPhase::kEnded, .reason = id.error().message});
    return true;
  }
  log::info("submitted a pilot", {{"pilot", pilot.name}, {"job", *id}, {"nodes", pilot.nodes}});
  EngineJob job{.id = *id, .name = pilot.name};
  jobs_[pilot.name] = {job};
  report(job);
  return true;
}

void Round::cancel(const std::vector<core::CancelPilot>& pilots) {
  std::vector<std::string> ids;
  for (const core::CancelPilot& pilot : pilots) {
    std::erase_if(waiting_, [&](const core::SubmitPilot& other) { return other.name == pilot.name; });
    const std::size_t before = ids.size();
    if (const auto there = jobs_.find(pilot.name); there != jobs_.end()) {
      for (const EngineJob& job : there->second) {
        if (job.phase != PilotPhase::kEnded) ids.push_back(job.id);
      }
    }
    if (ids.size() > before) {
      log::info("cancel a pilot", {{"pilot", pilot.name}});
    } else {
      core_.submit(core::PilotState{.pool = pilot.pool, .name = pilot.name, .phase = PilotPhase::kEnded});
    }
  }
  if (ids.empty()) return;
  if (const Status done = engine_->cancel(ids); !done) set_problem(done.error().message);
}

void Edge::start() {
  thread_ = std::thread([this] {
    MonoTime next = mono_now(), listed = next;
    std::vector<core::Send> messages;
    while (!queue_.closed()) {
      const Duration nap = std::max(next - mono_now(), Duration(0));
      for (core::Send& message : queue_.pop_batch(kBatch, nap)) messages.push_back(std::move(message));
      const MonoTime now = mono_now();
      if (now >= next) {
        listed = now;
        const Duration pause = round_.run(std::exchange(messages, {}));
        next = mono_now() + pause;
      } else if (next - now <= kMaxAhead && now - listed <= kMaxAhead) {
        next = next + round_.run_early(messages);
      }
    }
  });
}

void Edge::stop() {
  queue_.close();
  round_.stop();
  if (thread_.joinable()) thread_.join();
}

Engines::Engines(const std::map<std::string, ProviderConfig>& pools, const std::string& prefix,
                 const CoreLink& core) {
  std::map<std::string, ProviderConfig> slurm;
  std::set<std::string> of_slurm;
  for (const auto& [pool, config] : pools) {
    if (config.type == "slurm" && config.rest_url.empty()) {
      slurm.emplace(pool, config);
      of_slurm.insert(pool);
    } else if (config.type == "slurm") {
      edges_.push_back(std::make_unique<Edge>(
          Round({pool}, prefix, std::make_unique<SlurmRest>(config, storage::exchange), core)));
    } else {
      edges_.push_back(
          std::make_unique<Edge>(Round({pool}, prefix, make_kubernetes(config, prefix + pool), core)));
    }
  }
  if (slurm.empty()) return;
  edges_.push_back(std::make_unique<Edge>(
      Round(std::move(of_slurm), prefix, std::make_unique<Slurm>(std::move(slurm), child_commands()), core)));
}

void Engines::start() {
  for (const auto& edge : edges_) edge->start();
}

void Engines::send(core::Send message) {
  std::string pool;
  if (auto* wanted = std::get_if<core::SubmitPilot>(&message)) pool = wanted->pool;
  if (auto* unwanted = std::get_if<core::CancelPilot>(&message)) pool = unwanted->pool;
  for (const auto& edge : edges_) {
    if (edge->supplies(pool)) return edge->send(std::move(message));
  }
}

void Engines::stop() {
  for (const auto& edge : edges_) edge->stop();
}

}  // namespace det::engines
