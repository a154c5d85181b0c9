// The Jobs and pods of one pool as its watches report them, and the pilots that follow from them. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "master/engines/engine.h"
#include "master/engines/kubernetes/watch.h"

namespace det::engines {

class Fleet {
 public:
  /// `start_timeout`: time after which a pilot with only some of its nodes is released.
  explicit Fleet(Duration start_timeout) : start_timeout_(start_timeout) {}

  void apply(const Change& change, MonoTime now);
  /// Whether Jobs and pods have been listed, and no watch has failed since.
  bool complete() const { return jobs_listed_ && pods_listed_; }
  /// Returns why they are not complete; "" while the first list is in progress.
  const std::string& problem() const { return problem_; }
  /// Makes the fleet incomplete until both are listed again.
  void forget(const std::string& problem);

  /// A submission succeeded: the Job is listed as pending until a watch reports it, at most kUnseen.
  void expect(const std::string& name, MonoTime now);
  /// A Job was deleted: it has ended.
  void end(const std::string& name, const std::string& reason);

  std::vector<EngineJob> jobs(MonoTime now) const;
  /// Returns the Jobs that a watch has reported and that have not ended.
  std::vector<Object> live() const;
  /// Returns the newest pilot that has had only some of its nodes for `start_timeout`. Two gangs that hold
  /// parts of each other's nodes would wait forever.
  std::optional<std::string> partial(MonoTime now) const;
  /// Returns Jobs that have ended; those that failed after kKeepFailed only, for their logs.
  std::vector<std::string> outdated(MonoTime now) const;

  static constexpr auto kUnseen = std::chrono::seconds(30);
  static constexpr auto kKeepFailed = std::chrono::minutes(5);

 private:
  struct Job {
    Object object;
    std::map<std::string, Object> pods;
    std::optional<MonoTime> partial_since, ended_since;
  };
  void set_job(const Object& object);
  void set_pod(const Object& object);
  /// Updates the times of a Job.
  static void date(Job& job, MonoTime now);
  static EngineJob view(const Job& job);

  const Duration start_timeout_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, Object> orphans_;  ///< pods that were reported before their Job, by name
  std::map<std::string, MonoTime> unseen_;
  bool jobs_listed_ = false, pods_listed_ = false;
  std::string problem_;
};

}  // namespace det::engines
