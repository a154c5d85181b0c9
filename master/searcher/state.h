// Owns what a Searcher consists of. Private to searcher.cc and codec.cc.
#pragma once

#include "master/searcher/method.h"

namespace det::searcher {

inline constexpr std::int64_t kMostTrials = 10'000'000;
inline constexpr std::int64_t kMostTime = std::int64_t{1} << 53;  ///< doubles count so far

struct Searcher::State {
  std::shared_ptr<const expconf::ExperimentConfig> config;
  std::unique_ptr<SearchMethod> method;
  std::unique_ptr<Sampler> sampler;
  Random random;
  Book book;
  Fault fault = Fault::kNone;
  bool shut_down = false;
  std::vector<std::uint32_t> progress;  ///< by trial, in parts of a million; 0 of a closed one
  std::int64_t running = 0;             ///< their sum

  void tell(const Event& event, MethodContext& context);
  void set_progress(TrialNumber trial, double progress);
};

}  // namespace det::searcher
