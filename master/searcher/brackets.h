// Owns the arithmetic of asynchronous halving: rung lengths, brackets, how many trials each gets
// (determined-0.38 §1.6). Exact for whole divisors (W6).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "master/expconf/config.h"
#include "master/searcher/fault.h"

namespace det::searcher {

/// One run of ASHA inside a search.
struct Bracket {
  std::vector<std::int64_t> rungs;  ///< the training length of each, in units of max_time, rising
  std::int64_t max_trials = 0;
  std::int64_t concurrency = 0;  ///< trials at a time, >= 1; may exceed max_trials
  bool operator==(const Bracket&) const = default;
};

/// The brackets of an async_halving (one) or adaptive_asha search, the one that stops most first. Fails when
/// there is no length to divide, or what divides it is not above 1.
Result<std::vector<Bracket>> plan_brackets(const expconf::SearcherConfig& config, Fault fault = Fault::kNone);

/// The rungs above one of length `top`, up to and with `max_time`; divisor > 1.
std::vector<std::int64_t> rungs_above(std::int64_t top, std::int64_t max_time, double divisor);
/// How `max_trials` are shared among brackets of so many rungs, in that order.
std::vector<std::int64_t> share_trials(std::int64_t max_trials, double divisor,
                                       const std::vector<std::int64_t>& rungs);
/// How many trials each bracket of `trials` runs at a time; `limit` 0: none was set.
std::vector<std::int64_t> share_concurrency(std::int64_t limit, double divisor,
                                            const std::vector<std::int64_t>& trials);

}  // namespace det::searcher
