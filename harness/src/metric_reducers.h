// Owns running the reducers a trial wrapped around a window of batches.
#pragma once

#include <vector>

#include "base/json.h"
#include "context_state.h"

namespace det {

/// Those for training or those for validation.
class MetricReducers {
 public:
  MetricReducers(ContextState& state, bool training) : state_(state), training_(training) {}
  void reset();
  /// Adds their results to `metrics`; every rank calls it. Throws std::invalid_argument when a result has not
  /// the form it should have, or a name is there already.
  void reduce_into(Json& metrics);

 private:
  bool applies(const WrappedReducer& reducer) const {
    return training_ ? reducer.for_training : reducer.for_validation;
  }
  ContextState& state_;
  bool training_;
};

}  // namespace det
