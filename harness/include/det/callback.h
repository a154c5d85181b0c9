// Owns Callback: what a trial may do at the moments of its training. No LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "det/distributed.h"

namespace det {

/// Hooks, called on the training thread at exactly the moment their comment names; on every rank unless it
/// says chief. state_dict() is saved in every checkpoint under the callback's name and put back on resume.
class Callback {
 public:
  virtual ~Callback() = default;
  /// First of all, before the data loaders are built. `checkpoint` is where training starts from, "" from
  /// nothing.
  virtual void on_trial_startup(int64_t /*first_batch_idx*/, const std::string& /*checkpoint*/) {}
  /// The checkpoint's files are read, nothing is applied yet. `checkpoint` is its directory.
  virtual void on_checkpoint_load_start(const std::string& /*checkpoint*/) {}
  /// After the restore, before the first validation and the first batch.
  virtual void on_training_start() {}
  virtual void on_training_epoch_start(int64_t /*epoch_idx*/) {}
  /// After the last batch of an epoch, before its metrics are reported.
  virtual void on_training_epoch_end(int64_t /*epoch_idx*/) {}
  /// The training metrics since the last report have been averaged over ranks and reported.
  virtual void on_training_workload_end(const Json& /*metrics*/) {}
  virtual void on_validation_start() {}
  /// Around the loop over the validation data; not with evaluate_full_dataset. `outputs` are this rank's
  /// metrics, batch by batch.
  virtual void on_validation_epoch_start() {}
  virtual void on_validation_epoch_end(const std::vector<Json>& /*outputs*/) {}
  /// Reduced over ranks, not yet reported.
  virtual void on_validation_end(const Json& /*metrics*/) {}
  /// Chief. Before anything is written; what it adds to `metadata` is saved with the checkpoint.
  virtual void on_checkpoint_save_start(Json& /*metadata*/) {}
  /// Chief. All files are in `directory`; it may add its own. The checkpoint becomes visible after this.
  virtual void on_checkpoint_write_end(const std::string& /*directory*/) {}
  /// The checkpoint is durable and reported. Writing goes on behind training: this comes at a later batch
  /// boundary.
  virtual void on_checkpoint_upload_end(const std::string& /*uuid*/) {}
  /// Training is over, for whatever reason that lets us speak: completed, stopped, pre-empted.
  virtual void on_trial_shutdown() {}

  virtual Json state_dict() const;
  virtual void load_state_dict(const Json& /*state*/) {}
};

/// By name, in the order of the calls.
using Callbacks = std::vector<std::pair<std::string, std::shared_ptr<Callback>>>;

}  // namespace det
