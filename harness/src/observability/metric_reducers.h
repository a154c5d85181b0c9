// Runs the MetricReducers that a trial wrapped, over one window of batches. Training thread.
#pragma once

#include <vector>

#include "common/base/json.h"
#include "harness/src/trainer/context_state.h"

namespace det {

/// The wrapped reducers of one kind: those for training or those for validation. Holds only a reference to
/// the context's state, which must outlive it.
class MetricReducers {
 public:
  /// `training` selects the reducers with `for_training`; false selects those with `for_validation`.
  MetricReducers(ContextState& state, bool training) : state_(state), training_(training) {}
  /// Starts a new window: resets every selected reducer.
  void reset();
  /// Adds the results of the reducers to `metrics`. Collective: every rank calls it, and all get the same
  /// result. Throws std::invalid_argument when a result has the wrong form or a metric of that name exists.
  void reduce_into(Json& metrics);

 private:
  bool applies(const WrappedReducer& reducer) const {
    return training_ ? reducer.for_training : reducer.for_validation;
  }
  ContextState& state_;
  bool training_;
};

}  // namespace det
