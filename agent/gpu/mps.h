// NVIDIA's Multi-Process Service (MPS): lets the tasks of several slots use one GPU at the same time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/detect.h"
#include "common/base/result.h"

namespace det::agent {

/// The MPS control daemon of an agent. It survives the end of the agent's process, as tasks do: the next
/// agent takes it over. Used by one thread.
class Mps {
 public:
  static constexpr const char* kProgram = "nvidia-cuda-mps-control";

  struct Options {
    std::string directory;  ///< for the pipes and the log of the daemon
    std::vector<Device> devices;
    int slots_per_device = 2;
    bool task_users = false;  ///< each task has a user of its own
  };
  /// Starts the daemon, unless that of an earlier agent runs. Limits each client to its share of the
  /// processors and of the memory of a GPU. Blocks for seconds. Errors: kFailedPrecondition (the program is
  /// missing or fails; tasks have different users, of which MPS serves one at a time).
  static Result<std::unique_ptr<Mps>> start(const Options& options);

  /// Directory of the pipes by which tasks reach the daemon.
  std::string pipes() const { return directory_ + "/pipes"; }
  /// Ends the daemon. No task may use it any more.
  void stop() const;

 private:
  explicit Mps(std::string directory) : directory_(std::move(directory)) {}
  std::string logs() const { return directory_ + "/log"; }
  std::vector<std::string> environment(const std::string& visible) const;
  /// Runs the program until the daemon is in the background. `visible`: the GPUs. Errors: why it has failed.
  Status begin(const std::string& visible) const;
  /// Sends commands to the daemon. Errors: why it has failed.
  Status send(const std::string& commands) const;

  const std::string directory_;
};

/// Returns the part of the processors of a GPU that a slot may use, in percent.
inline int thread_percentage(int slots_per_device) { return 100 / slots_per_device; }

}  // namespace det::agent
