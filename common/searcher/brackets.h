// Arithmetic of asynchronous halving: rung lengths, brackets, and the trials and concurrency of each bracket.
// Exact for whole divisors. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/result.h"
#include "common/expconf/config.h"
#include "common/searcher/fault.h"

namespace det::searcher {

/// Maximum number of rungs of a bracket.
inline constexpr std::int64_t kMaxBracketRungs = 100;

/// One run of ASHA inside a search.
struct Bracket {
  /// Training lengths in units of max_time, rising.
  std::vector<std::int64_t> rungs;
  std::int64_t max_trials = 0;
  /// Concurrent trials, >= 1; may exceed max_trials.
  std::int64_t concurrency = 0;
  bool operator==(const Bracket&) const = default;
};

/// Returns the brackets of an async_halving (one bracket) or adaptive_asha search, the one with the most
/// rungs first. Errors: kInvalidArgument (no training length, divisor not above 1 or above 1e9, or not 1 to
/// 100 brackets of 1 to 100 rungs).
Result<std::vector<Bracket>> plan_brackets(const expconf::SearcherConfig& config, Fault fault = Fault::kNone);

/// Returns the rung lengths above `top` up to and including `max_time`, each `divisor` times the one below;
/// at most 10'000 below `max_time`. Requires divisor > 1.
std::vector<std::int64_t> rungs_above(std::int64_t top, std::int64_t max_time, double divisor);
/// Splits `max_trials` among brackets with `rungs[i]` rungs, most rungs first. The weight of a bracket with r
/// rungs is divisor^(r-1) / r. Each bracket gets at least one trial; the remainder goes to the first.
std::vector<std::int64_t> share_trials(std::int64_t max_trials, double divisor,
                                       const std::vector<std::int64_t>& rungs);
/// Returns the concurrency of each bracket, given the `trials` of each. `limit` 0 means unlimited: every
/// bracket gets max(trials of the last bracket, floor(divisor)). Otherwise the limit is divided evenly and
/// the first brackets get the remainder; each gets at least one.
std::vector<std::int64_t> share_concurrency(std::int64_t limit, double divisor,
                                            const std::vector<std::int64_t>& trials);

}  // namespace det::searcher
