#pragma once

#include <memory>

#include "common/base/result.h"
#include "common/searcher/searcher.h"

namespace det::searcher {

/// Chooses the hyperparameters of new trials. Deterministic from (space, generator, the calls so far).
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Returns the next point. Random numbers come from `random`, which is part of the search's state.
  virtual Sample next(Random& random) = 0;
  /// The point became trial number `trial`. Called in order, without gaps.
  virtual void created(TrialNumber trial, const Sample& sample) = 0;
  /// Adds a trial's score after training for `length`. Smaller is better, never NaN. If the length was
  /// already observed for this trial, the better score counts.
  virtual void observe(TrialNumber trial, std::int64_t length, double score) = 0;
  /// State for restore(), as JSON.
  virtual nlohmann::json snapshot() const = 0;
  /// Replaces the state. Errors: kDataLoss.
  virtual Status restore(const nlohmann::json& snapshot) = 0;
};

/// Sampler "random": independent uniform points. Stateless.
std::unique_ptr<Sampler> make_random_sampler(const expconf::HyperparameterMap& space, Fault fault);
/// Sampler "tpe": tree-structured Parzen estimator, see tpe.cc.
std::unique_ptr<Sampler> make_tpe_sampler(const expconf::HyperparameterMap& space);

}  // namespace det::searcher
