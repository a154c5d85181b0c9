// Owns where new trials come from: the interface of samplers.
#pragma once

#include <memory>

#include "base/result.h"
#include "master/searcher/searcher.h"

namespace det::searcher {

/// Proposes points. Deterministic from (space, generator, what it was told).
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Sample next(Random& random) = 0;
  /// This point was made trial number `trial`; told in order, without a gap.
  virtual void created(TrialNumber trial, const Sample& sample) = 0;
  /// A trial's score (the smaller the better, never NaN) after training for `length`; of a length already
  /// told, the better one counts.
  virtual void observe(TrialNumber trial, std::int64_t length, double score) = 0;
  virtual nlohmann::json snapshot() const = 0;
  virtual Status restore(const nlohmann::json& snapshot) = 0;
};

/// "random": every point on its own, uniformly.
std::unique_ptr<Sampler> make_random_sampler(const expconf::HyperparameterMap& space, Fault fault);
/// "tpe": see tpe.cc.
std::unique_ptr<Sampler> make_tpe_sampler(const expconf::HyperparameterMap& space);

}  // namespace det::searcher
