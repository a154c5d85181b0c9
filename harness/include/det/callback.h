// Callback: user hooks of a trial's training. Independent of LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "det/distributed.h"

namespace det {

/// Base class of hooks. All hooks run on the training thread, on every rank unless marked "Chief only", in
/// the order of Trial::build_callbacks. An exception of a hook ends the trial.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Called before the data loaders are built. `first_batch_idx` is the number of batches already trained.
  /// `checkpoint` is the directory of the checkpoint that training starts from; "" for a start from scratch.
  virtual void on_trial_startup(int64_t /*first_batch_idx*/, const std::string& /*checkpoint*/) {}
  /// Called when the checkpoint's files have been read and none of its state has been applied yet.
  /// `checkpoint` is its directory.
  virtual void on_checkpoint_load_start(const std::string& /*checkpoint*/) {}
  /// Called after the restore, before the first validation and the first batch.
  virtual void on_training_start() {}
  /// Called before the first batch of an epoch. `epoch_idx` counts from 0.
  virtual void on_training_epoch_start(int64_t /*epoch_idx*/) {}
  /// Called after the last batch of an epoch, before the metrics of that batch are reported.
  virtual void on_training_epoch_end(int64_t /*epoch_idx*/) {}
  /// Called after the training metrics since the previous report have been reduced over all ranks and
  /// reported.
  virtual void on_training_workload_end(const Json& /*metrics*/) {}
  /// Called before a validation, with models still in training mode.
  virtual void on_validation_start() {}
  /// Called before the first and after the last validation batch; not called when the trial implements
  /// evaluate_full_dataset. `outputs` are the metrics of this rank, one object per batch.
  virtual void on_validation_epoch_start() {}
  virtual void on_validation_epoch_end(const std::vector<Json>& /*outputs*/) {}
  /// Called with the metrics reduced over all ranks, before they are reported.
  virtual void on_validation_end(const Json& /*metrics*/) {}
  /// Chief only. Called before anything is written. Entries added to `metadata` are saved with the
  /// checkpoint; "steps_completed" is overwritten.
  virtual void on_checkpoint_save_start(Json& /*metadata*/) {}
  /// Chief only. Called when all files are in `directory`; the callback may add its own files. The checkpoint
  /// becomes visible after this call.
  virtual void on_checkpoint_write_end(const std::string& /*directory*/) {}
  /// Called when the checkpoint `uuid` is durable and reported. Checkpoints are written in the background, so
  /// this call comes at a later batch boundary.
  virtual void on_checkpoint_upload_end(const std::string& /*uuid*/) {}
  /// Called at the end of fit(), when training has completed, was stopped or was preempted; not after an
  /// error.
  virtual void on_trial_shutdown() {}

  /// State to save in every checkpoint under the callback's name, and its counterpart on resume. The default
  /// is an empty state.
  virtual Json state_dict() const;
  virtual void load_state_dict(const Json& /*state*/) {}
};

/// Callbacks by name, in the order in which they are called. The names key their state in checkpoints.
using Callbacks = std::vector<std::pair<std::string, std::shared_ptr<Callback>>>;

}  // namespace det
