// Changes of queue settings by users: experiments and commands alike (UpdateJob).
#pragma once

#include <string>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// Has no state of its own: the settings belong to their experiment or command.
class Jobs {
 public:
  explicit Jobs(Owners& owners) : owners_(owners) {}

  Result<ReplyValue> handle(Step& step, const UpdateJob& input);

 private:
  /// A live experiment or command as an entry of a queue.
  struct Entry {
    std::string name;  ///< for error messages
    Experiment* experiment = nullptr;
    Command* command = nullptr;  ///< exactly one of the two is set
    QueueSettings* queue = nullptr;
    WallTime submitted;
    int slots = 0;          ///< slots of one trial, or of the command
    bool detached = false;  ///< runs outside the cluster, so it is in no queue
  };
  /// Errors: kNotFound.
  Result<Entry> find(JobKey job);
  /// Validates an update. Errors: see UpdateJob.
  Status check(const UpdateJob& input, const Entry& entry);
  /// Returns the jobs of a pool.
  std::vector<scheduler::Job> jobs_of(const std::string& pool) const;
  /// Stores the queue settings of an entry and updates its scheduler.
  void put(Step& step, const Entry& entry);
  /// Applies the priorities and positions of scheduler::move.
  void place(Step& step, const std::vector<scheduler::Job>& moved);

  Owners& owners_;
};

}  // namespace det::core
