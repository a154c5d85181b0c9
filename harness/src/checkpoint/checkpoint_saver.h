// CheckpointSaver: saves checkpoints in the background. Training waits for a copy in memory only; a separate
// thread writes that copy to disk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/src/checkpoint/checkpoint.h"
#include "harness/src/client/client.h"
#include "harness/src/trial/run_info.h"
#include "harness/src/trial/wrapped_objects.h"

namespace det {

/// Saves the checkpoints of a trial. There is one per trial, used on the training thread, with at most one
/// save in progress.
///
/// User code never runs on the writing thread. When the trial has callbacks, the files are written in the
/// background, the next call of save(), finished() or wait() then calls on_checkpoint_write_end, and the
/// checkpoint is committed in the background after that.
class CheckpointSaver {
 public:
  /// Call it after the trial's constructor. The callbacks, code and storage are read by save(), not here. The
  /// references must outlive this object.
  CheckpointSaver(const RunInfo& run, const WrappedObjects& wrapped);
  /// Waits for the current job. A save that still waits for on_checkpoint_write_end is dropped; call wait()
  /// first.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;

  /// Copies everything that training changes into a reused buffer and starts writing it. Waits for the
  /// previous save first. Collective: all ranks call it in the same order as their other exchanges; only the
  /// chief writes. Returns the checkpoint's uuid, the same on all ranks. Throws std::runtime_error when the
  /// state cannot be saved or a rank is gone, and exceptions of callbacks. The failure of an earlier save is
  /// reported by finished().
  std::string save(const TrialState& state);

  /// Returns the checkpoints that have become durable since the last call, in order, for the chief to report;
  /// always empty on other ranks. Costs one atomic read when there is nothing new. Throws std::runtime_error,
  /// StorageFull for lack of space, with the reason when a save failed (later checkpoints are returned by the
  /// next call); a failed checkpoint is not visible. Exceptions of callbacks are passed on, and their
  /// checkpoint is dropped.
  std::vector<CheckpointRecord> finished();

  /// Blocks until all saves are durable or have failed; finished() then returns the results. Exceptions of
  /// callbacks are passed on.
  void wait();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
