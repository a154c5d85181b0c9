// Edge between the core and an engine: one thread "engines" carries out SubmitPilot and CancelPilot and
// reports PilotState. An engine that counts its requests gets one a second on average, however many pilots
// and waiting trials there are. While the engine does not reply, messages are dropped: the core repeats them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/queue.h"
#include "master/config/pools.h"
#include "master/core/core.h"
#include "master/engines/engine.h"

namespace det::engines {

/// Access to the core. Both are called on the thread of the edge and may block.
struct CoreLink {
  std::function<void(core::Input)> submit;
  /// Returns the live pilots by name.
  std::function<Result<std::map<std::string, core::Pilot>>()> pilots;
};

/// Submissions of one round. Further ones wait for the next round, so that states stay current.
inline constexpr std::size_t kMaxSubmissions = 4;

/// One round of the edge; the thread below calls it about once a second. Not thread-safe.
class Round {
 public:
  /// `pools`: those that the engine supplies. `prefix`: the beginning of the names of this cluster's pilots.
  Round(std::set<std::string> pools, std::string prefix, std::unique_ptr<Engine> engine, CoreLink core);

  /// Lists the jobs, reports changes, and carries out messages; those of other pools are ignored. Returns the
  /// time until the next round: 1 s for each request to the engine, at least 1 s.
  Duration run(const std::vector<core::Send>& messages);
  /// Carries out submissions, and cancellations of jobs in the newest list, and removes them from `messages`.
  /// Without effect while the engine does not reply. Returns the time by which the next round is later: 1 s
  /// for each request.
  Duration run_early(std::vector<core::Send>& messages);

  bool supplies(const std::string& pool) const { return pools_.contains(pool); }
  /// Ends a call of the engine early. Any thread.
  void stop() { engine_->stop(); }

 private:
  bool is_submission(const core::Send& message) const;
  bool is_cancellation(const core::Send& message) const;
  bool has_live_job(const std::string& pilot) const;
  void report(const EngineJob& job);
  void report_missing(const std::map<std::string, core::Pilot>& known);
  /// Cancels the later ones of jobs with one name: a submission that was repeated after a lost reply.
  void cancel_twins();
  /// Lists the jobs and reports changes. Returns false when the engine does not reply.
  bool list();
  /// Queues a submission, unless it waits already.
  void enqueue(const core::SubmitPilot& pilot);
  /// Carries out queued submissions, at most kMaxSubmissions; none while `recovers_`.
  void submit_waiting();
  /// Returns false when the engine does not reply.
  bool submit(const core::SubmitPilot& pilot);
  /// Cancels the jobs of pilots by one request, and reports pilots without a job as ended.
  void cancel(const std::vector<core::CancelPilot>& pilots);
  void set_problem(const std::string& problem);
  /// Returns the pool of a pilot by its name, or "".
  std::string pool_of(const std::string& name) const;

  std::set<std::string> pools_;
  std::string prefix_;
  std::unique_ptr<Engine> engine_;
  CoreLink core_;
  std::map<std::string, std::vector<EngineJob>> jobs_;  ///< live and ended jobs of the newest list, by name
  std::map<std::string, EngineJob> reported_;
  std::deque<core::SubmitPilot> waiting_;  ///< submissions for later rounds
  std::string problem_;
  /// The newest list is the first one after a problem. The engine may be about to carry out an abandoned
  /// submission, so that the next list decides what is submitted.
  bool recovers_ = false;
  int rounds_ = 0;  ///< with a list
};

/// The thread of one engine.
class Edge {
 public:
  explicit Edge(Round round) : round_(std::move(round)), queue_(kMaxMessages) {}
  ~Edge() { stop(); }

  bool supplies(const std::string& pool) const { return round_.supplies(pool); }
  void start();
  /// Queues a message. Never blocks; a message beyond the bound is dropped, and the core repeats it.
  void send(core::Send message) { queue_.try_push(std::move(message)); }
  /// Ends the thread after the command in progress. Idempotent.
  void stop();

 private:
  static constexpr std::size_t kMaxMessages = 4096;
  Round round_;
  Queue<core::Send> queue_;
  std::thread thread_;
};

/// The edges of all engines: one for the commands of Slurm, and one for each pool on slurmrestd or
/// Kubernetes.
class Engines {
 public:
  /// `prefix`: the beginning of the names of this cluster's pilots, with a hyphen at its end.
  Engines(const std::map<std::string, ProviderConfig>& pools, const std::string& prefix,
          const CoreLink& core);

  void start();
  /// Queues a SubmitPilot or CancelPilot for the engine of its pool. Never blocks.
  void send(core::Send message);
  /// Ends all threads. Idempotent.
  void stop();

 private:
  std::vector<std::unique_ptr<Edge>> edges_;
};

}  // namespace det::engines
