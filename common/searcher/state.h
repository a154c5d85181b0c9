// State of a Searcher. Private to searcher.cc and codec.cc.
#pragma once

#include "common/searcher/method.h"

namespace det::searcher {

/// Limits of an extended search.
inline constexpr std::int64_t kMaxTrials = 10'000'000;
/// 2^53: the range in which a double counts exactly
inline constexpr std::int64_t kMaxTime = std::int64_t{1} << 53;

/// Everything that a Searcher holds. snapshot() stores all but the configuration, the fault and the progress.
struct Searcher::State {
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::unique_ptr<SearchMethod> method;
  std::unique_ptr<Sampler> sampler;
  Random random;
  Book book;
  Fault fault = Fault::kNone;
  bool shut_down = false;
  /// By trial, in millionths; 0 for a closed trial.
  std::vector<std::uint32_t> progress;
  std::int64_t running = 0;  ///< sum of `progress`

  /// Applies one event to the book and calls the method.
  void handle(const Event& event, MethodContext& context);
  /// Sets the progress of one trial, clamped to 0..1. NaN counts as 0.
  void set_progress(TrialNumber trial, double value);
};

}  // namespace det::searcher
