// Internal state of a TrialContext, shared by the context and the trainer. Used on the training thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "det/profiler.h"
#include "det/tensorboard.h"
#include "harness/src/base/crash_report.h"
#include "harness/src/observability/metric_reducers.h"
#include "harness/src/observability/phase_clock.h"
#include "harness/src/trainer/gradient_pipeline.h"
#include "harness/src/trial/run_info.h"
#include "harness/src/trial/wrapped_objects.h"

namespace det {

/// Output beside the reports.
struct Instruments {
  std::unique_ptr<TraceProfiler> tracer;  ///< null unless the trial set a profiler
  std::unique_ptr<PhaseClock> phases;  ///< null unless profiling or a requested trace needs it (chief only)
  /// Directory of event files; those of reported metrics can be turned off.
  std::string tensorboard_dir;
  std::unique_ptr<TensorBoard> tensorboard;  ///< created at first use
  bool tensorboard_logging = true;
};

/// Internal state behind a TrialContext.
struct ContextState {
  RunInfo run;
  WrappedObjects wrapped;
  GradientPipeline gradients;
  MetricReducers metric_reducers;
  Instruments instruments;
  Activity activity;
  /// Loaders deliver batches on `run.device`.
  bool auto_to_device = true;
  /// Training over a BatchSource is an error.
  bool reproducible_data = true;
  /// The trial steps its wrapped models itself, without an optimizer (a compiled step).
  bool steps_itself = false;
  /// Batches trained before this start.
  std::int64_t initial_batch = 0;
  /// Step of reported media: batches trained, with the one that train_batch works on.
  std::int64_t report_step = 0;
  /// The trial is called only to check it, so it reports nothing.
  bool sanity_check = false;
  /// set_stop_requested() was called on this rank, or on another one.
  bool stop_requested = false;

  /// The state of the context in use, for handlers of crashes and exits; null without one.
  static inline std::atomic<ContextState*> active{nullptr};
  ContextState() = default;
  ~ContextState() {
    if (active.load() != this) return;
    set_crash_activity(nullptr);
    active.store(nullptr);
  }
};

}  // namespace det
