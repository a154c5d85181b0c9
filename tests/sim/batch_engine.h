// A simulated batch engine (Slurm) with the edge that drives it: jobs that wait, run one machine on each
// node and end, and reports of their state once a second.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/machine.h"

namespace det::sim {

class BatchEngine {
 public:
  /// `appear` gets each machine that a job starts.
  BatchEngine(Engine& engine, Master& master, Checker& checker, const Plan& plan,
              std::function<void(std::shared_ptr<Machine>)> appear);

  /// Starts the reports and receives the messages of the master. No effect without providers.
  void start();
  /// No job waits or runs.
  bool empty() const;

  // Faults.
  void outage(Duration duration);  ///< No message and no report passes.
  void refuse(Duration duration);  ///< Submissions are refused.
  void preempt_job();              ///< The agents of a job announce their stop; the job ends soon after.
  void end_job();                  ///< A job ends with its processes.
  void lose_job();                 ///< A job is reported as ended and runs on.

 private:
  struct BatchJob {
    std::string pool;
    int nodes = 1;
    core::PilotPhase phase = core::PilotPhase::kPending;
    std::string reason;
    MonoTime ended;  ///< With kEnded.
    std::optional<WallTime> until;
    bool mistaken = false;  ///< The next report is false: it has the job as ended.
    std::vector<std::shared_ptr<Machine>> machines;
  };
  void receive(const core::Send& send);
  void submit(const core::SubmitPilot& pilot);
  void run(const std::string& name);
  void end(BatchJob& job, const std::string& reason);
  /// The agents of a job announce their stop; the job ends soon after.
  void preempt(const BatchJob& job);
  void report();
  void send_report(const std::string& name, const BatchJob& job);
  BatchJob* some_running();
  bool away() const { return engine_.now() < away_until_; }

  Engine& engine_;
  Master& master_;
  Checker& checker_;
  const Plan& plan_;
  std::function<void(std::shared_ptr<Machine>)> appear_;
  std::map<std::string, BatchJob> jobs_;
  int incarnations_ = 0;
  MonoTime away_until_, refuse_until_;
};

}  // namespace det::sim
