#include "master/engines/kubernetes/fleet.h"

#include <algorithm>
#include <tuple>

namespace det::engines {

using core::PilotPhase;

void Fleet::forget(const std::string& problem) {
  jobs_listed_ = pods_listed_ = false;
  problem_ = problem;
}

void Fleet::set_job(const Object& object) {
  unseen_.erase(object.name);
  Job& job = jobs_[object.name];
  // A deletion by this master may be ahead of the watch.
  if (job.object.phase != PilotPhase::kEnded) job.object = object;
}

void Fleet::set_pod(const Object& object) {
  if (const auto job = jobs_.find(object.job); job != jobs_.end()) {
    job->second.pods[object.name] = object;
  } else {
    orphans_[object.name] = object;
  }
}

void Fleet::apply(const Change& change, MonoTime now) {
  if (change.kind == Change::Kind::kLost) {
    (change.of_jobs ? jobs_listed_ : pods_listed_) = false;
    problem_ = change.problem;
    return;
  }
  if (change.kind == Change::Kind::kAll) {
    if (change.of_jobs) {
      std::erase_if(jobs_, [&](const auto& one) {
        return std::none_of(change.objects.begin(), change.objects.end(),
                            [&](const Object& object) { return object.name == one.first; });
      });
    } else {
      orphans_.clear();
      for (auto& [name, job] : jobs_) job.pods.clear();
    }
    (change.of_jobs ? jobs_listed_ : pods_listed_) = true;
    if (complete()) problem_.clear();
  }
  for (const Object& object : change.objects) {
    if (change.kind == Change::Kind::kRemoved) {
      if (change.of_jobs) {
        jobs_.erase(object.name);
        unseen_.erase(object.name);
      } else {
        orphans_.erase(object.name);
        if (const auto job = jobs_.find(object.job); job != jobs_.end()) job->second.pods.erase(object.name);
      }
    } else {
      change.of_jobs ? set_job(object) : set_pod(object);
    }
  }
  std::erase_if(orphans_, [this](const auto& one) {
    const auto job = jobs_.find(one.second.job);
    if (job != jobs_.end()) job->second.pods[one.first] = one.second;
    return job != jobs_.end();
  });
  for (auto& [name, job] : jobs_) date(job, now);
}

void Fleet::date(Job& job, MonoTime now) {
  const auto assigned =
      std::count_if(job.pods.begin(), job.pods.end(), [](const auto& pod) { return pod.second.assigned; });
  const bool partial = job.object.phase != PilotPhase::kEnded && assigned > 0 && assigned < job.object.nodes;
  if (!partial) job.partial_since.reset();
  if (partial && !job.partial_since) job.partial_since = now;
  if (job.object.phase == PilotPhase::kEnded && !job.ended_since) job.ended_since = now;
}

void Fleet::expect(const std::string& name, MonoTime now) {
  if (!jobs_.contains(name)) unseen_[name] = now;
}

void Fleet::end(const std::string& name, const std::string& reason) {
  unseen_.erase(name);
  const auto job = jobs_.find(name);
  if (job == jobs_.end() || job->second.object.phase == PilotPhase::kEnded) return;
  job->second.object.phase = PilotPhase::kEnded;
  job->second.object.reason = reason;
}

EngineJob Fleet::view(const Job& job) {
  EngineJob shown{
      .id = job.object.name, .name = job.object.name, .phase = job.object.phase, .reason = job.object.reason};
  int there = 0;
  for (const auto& [name, pod] : job.pods) there += pod.phase == PilotPhase::kPending ? 0 : 1;
  if (shown.phase == PilotPhase::kPending && there >= std::max(1, job.object.nodes))
    shown.phase = PilotPhase::kRunning;
  if (shown.phase == PilotPhase::kRunning) shown.reason.clear();
  for (const auto& [name, pod] : job.pods) {
    const bool explains = shown.phase == PilotPhase::kPending ? pod.phase == PilotPhase::kPending
                                                              : job.object.failed && pod.failed;
    if (!explains || pod.reason.empty()) continue;
    shown.reason = pod.reason;
    break;
  }
  return shown;
}

std::vector<EngineJob> Fleet::jobs(MonoTime now) const {
  std::vector<EngineJob> list;
  for (const auto& [name, job] : jobs_) list.push_back(view(job));
  for (const auto& [name, since] : unseen_) {
    if (now < since + kUnseen) list.push_back({.id = name, .name = name});
  }
  return list;
}

std::vector<Object> Fleet::live() const {
  std::vector<Object> found;
  for (const auto& [name, job] : jobs_) {
    if (job.object.phase != PilotPhase::kEnded) found.push_back(job.object);
  }
  return found;
}

std::optional<std::string> Fleet::partial(MonoTime now) const {
  const Job* newest = nullptr;
  const auto age = [](const Job& job) {
    return std::tuple(job.object.created, job.object.name.size(), job.object.name);
  };
  for (const auto& [name, job] : jobs_) {
    if (!job.partial_since || now < *job.partial_since + start_timeout_) continue;
    if (!newest || age(*newest) < age(job)) newest = &job;
  }
  return newest ? std::optional(newest->object.name) : std::nullopt;
}

std::vector<std::string> Fleet::outdated(MonoTime now) const {
  std::vector<std::string> names;
  for (const auto& [name, job] : jobs_) {
    if (job.ended_since && (!job.object.failed || now >= *job.ended_since + kKeepFailed))
      names.push_back(name);
  }
  return names;
}

}  // namespace det::engines
