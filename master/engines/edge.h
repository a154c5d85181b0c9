// Edge between the core and Slurm: one thread "engines" carries out SubmitPilot and CancelPilot and reports
// PilotState. Calls squeue at most once a second, however many pilots there are. While Slurm does not reply,
// messages are dropped: the core repeats them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/queue.h"
#include "master/core/core.h"
#include "master/engines/slurm.h"

namespace det::engines {

/// Access to the core. Both are called on the thread of the edge and may block.
struct CoreLink {
  std::function<void(core::Input)> submit;
  /// Returns the live pilots by name.
  std::function<Result<std::map<std::string, core::Pilot>>()> pilots;
};

/// One round of the edge; the thread below calls it once a second. Not thread-safe.
class SlurmRound {
 public:
  /// `prefix`: the beginning of the names of this cluster's pilots.
  SlurmRound(std::map<std::string, ProviderConfig> pools, std::string prefix, Slurm slurm, CoreLink core);

  /// Lists the jobs, reports changes, and carries out messages.
  void run(const std::vector<core::Send>& messages);

 private:
  void report(const SlurmJob& job);
  void report_missing(const std::map<std::string, core::Pilot>& known);
  /// Cancels the later ones of jobs with one name: a submission that was repeated after a lost reply.
  void cancel_twins();
  void submit(const core::SubmitPilot& pilot);
  void cancel(const core::CancelPilot& pilot);
  void set_problem(const std::string& problem);
  /// Returns the pool of a pilot by its name, or "".
  std::string pool_of(const std::string& name) const;

  const std::map<std::string, ProviderConfig> pools_;
  const std::string prefix_;
  const Slurm slurm_;
  const CoreLink core_;
  std::map<std::string, std::vector<SlurmJob>> jobs_;  ///< live and ended jobs of the newest list, by name
  std::map<std::string, SlurmJob> reported_;
  std::string problem_;
  int rounds_ = 0;
};

class Edge {
 public:
  explicit Edge(SlurmRound round) : round_(std::move(round)), queue_(kMaxMessages) {}
  ~Edge() { stop(); }

  void start();
  /// Queues a message. Never blocks; a message beyond the bound is dropped, and the core repeats it.
  void send(core::Send message) { queue_.try_push(std::move(message)); }
  /// Ends the thread after the command in progress. Idempotent.
  void stop();

 private:
  static constexpr std::size_t kMaxMessages = 4096;
  SlurmRound round_;
  Queue<core::Send> queue_;
  std::thread thread_;
};

}  // namespace det::engines
