// Owns saving behind training's back: what training waits for is a copy in memory; a thread of its own makes
// that copy a checkpoint.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "client.h"
#include "context_state.h"

namespace det {

/// One per trial, used by the training thread; at most one save is under way. User code never runs on the
/// writing thread: when the trial has callbacks, the files of a save are written in the background,
/// on_checkpoint_write_end is called by the next save(), finished() or wait() after that, and only then the
/// checkpoint is made visible (in the background again).
class CheckpointSaver {
 public:
  /// After the trial's constructor: it looks at the context's callbacks, code and storage when it saves, not
  /// before.
  explicit CheckpointSaver(ContextState& context);
  /// Waits for what is under way. A save whose on_checkpoint_write_end has not been called is dropped: call
  /// wait() first.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;

  /// Copies everything that training changes into memory kept for it, and leaves the rest to the writing
  /// thread. First waits for a save still under way. All ranks call it, in the same order as their other
  /// exchanges; only the chief writes. Returns the checkpoint's uuid, the same on all ranks. Throws
  /// std::runtime_error when the state cannot be saved or a rank is gone, and whatever a callback throws; an
  /// earlier save that failed is finished()'s to tell.
  std::string save(const TrialState& state);

  /// Checkpoints that have become durable since the last call, in order: the chief's to report; always empty
  /// on other ranks. Costs the read of an atomic when there is nothing new. Throws std::runtime_error with
  /// the reason when a save failed (later ones are told by the next call); nothing of it is visible then.
  /// Throws what a callback throws; that checkpoint is dropped.
  std::vector<CheckpointRecord> finished();

  /// Returns when all is durable or has failed; then finished() has the news. Throws what a callback throws.
  void wait();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
