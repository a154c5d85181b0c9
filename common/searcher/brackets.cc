#include "common/searcher/brackets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/searcher/method.h"
#include "common/searcher/rung.h"

namespace det::searcher {
namespace {

constexpr std::size_t kMaxBrackets = 100;

/// Rung i of `count` is floor(max_time / divisor^(count-1-i)), at least 1.
std::vector<std::int64_t> rung_lengths(std::int64_t count, std::int64_t max_time, const Divisor& divisor) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i)
    lengths.push_back(std::max<std::int64_t>(divisor.divide(max_time, count - 1 - i), 1));
  return lengths;
}

/// Number of rungs of each bracket of an adaptive search, largest first.
std::vector<std::int64_t> bracket_rungs(const expconf::SearcherConfig& config, std::int64_t max_time,
                                        Fault fault) {
  std::vector<std::int64_t> rungs = config.bracket_rungs;
  if (rungs.empty()) {
    // At most max_rungs; the lowest rung needs at least one unit of training and the top rung one trial.
    const Divisor divisor(config.divisor);
    const auto log = [&](std::int64_t n) {
      if (fault != Fault::kFloatLogarithm) return divisor.log(n);
      return static_cast<std::int64_t>(std::log(static_cast<double>(n)) / std::log(config.divisor));
    };
    const std::int64_t most = std::min(
        {config.max_rungs, log(max_time) + 1, log(std::max<std::int64_t>(config.max_trials, 1)) + 1});
    std::int64_t least = most;
    if (config.mode == "conservative")
      least = 1;
    else if (config.mode != "aggressive")
      least = (most - 1) / 2 + 1;
    for (std::int64_t count = least; count <= most; ++count) rungs.push_back(count);
  }
  std::sort(rungs.begin(), rungs.end(), std::greater<>());
  return rungs;
}

/// Returns min(divisor^power, limit).
std::int64_t power(double divisor, std::int64_t exponent, std::int64_t limit) {
  return static_cast<std::int64_t>(
      std::min(std::pow(divisor, static_cast<double>(exponent)), static_cast<double>(limit)));
}

/// Returns floor(weight_b / sum of weights * max_trials) with weight_b = divisor^(rungs_b - 1) / rungs_b, in
/// integers over a common denominator. 128 bits hold the products, see kFits in share_trials.
std::vector<std::int64_t> exact_shares(std::int64_t max_trials, std::int64_t divisor,
                                       const std::vector<std::int64_t>& rungs, std::int64_t denominator) {
  std::vector<unsigned __int128> weights;
  unsigned __int128 sum = 0;
  for (std::int64_t count : rungs) {
    unsigned __int128 weight = static_cast<unsigned __int128>(denominator / count);
    for (std::int64_t i = 1; i < count; ++i) weight *= static_cast<unsigned __int128>(divisor);
    weights.push_back(weight);
    sum += weight;
  }
  std::vector<std::int64_t> shares;
  for (const auto& weight : weights)
    shares.push_back(static_cast<std::int64_t>(weight * static_cast<unsigned __int128>(max_trials) / sum));
  return shares;
}

std::vector<std::int64_t> rounded_shares(std::int64_t max_trials, double divisor,
                                         const std::vector<std::int64_t>& rungs) {
  // Weights are relative to the largest, so that no power overflows.
  std::vector<double> weights;
  for (std::int64_t count : rungs)
    weights.push_back(std::pow(divisor, static_cast<double>(count - rungs.front())) /
                      static_cast<double>(count));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> shares;
  for (double weight : weights)
    shares.push_back(static_cast<std::int64_t>(weight / sum * static_cast<double>(max_trials)));
  return shares;
}

}  // namespace

std::int64_t Divisor::divide(std::int64_t n, std::int64_t times) const {
  if (whole_ == 0)
    return static_cast<std::int64_t>(static_cast<double>(n) / std::pow(value_, static_cast<double>(times)));
  for (; times > 0 && n > 0; --times) n /= whole_;
  return n;
}

std::int64_t Divisor::log(std::int64_t n) const {
  std::int64_t exponent = 0;
  if (whole_ != 0) {
    for (; n >= whole_; n /= whole_) ++exponent;
  } else {
    // Bounded: powers of a divisor close to 1 hardly grow.
    for (double product = value_; product <= static_cast<double>(n) && exponent < kMaxBracketRungs;
         product *= value_)
      ++exponent;
  }
  return exponent;
}

std::vector<std::int64_t> share_trials(std::int64_t max_trials, double divisor,
                                       const std::vector<std::int64_t>& rungs) {
  const Divisor exact(divisor);
  std::int64_t denominator = 1;
  // Weights below 2^80 (denominator times power) leave room for max_trials in 128 bits.
  constexpr std::int64_t kFits = std::int64_t{1} << 40;
  for (std::int64_t count : rungs)
    denominator = denominator > kFits ? denominator : std::lcm(denominator, count);
  const bool fits = exact.whole() != 0 && denominator <= kFits &&
                    std::pow(divisor, static_cast<double>(rungs.front() - 1)) < static_cast<double>(kFits);
  auto shares = fits ? exact_shares(max_trials, exact.whole(), rungs, denominator)
                     : rounded_shares(max_trials, divisor, rungs);
  for (std::int64_t& share : shares) share = std::max<std::int64_t>(share, 1);
  shares.front() +=
      std::max<std::int64_t>(max_trials - std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), 0);
  return shares;
}

std::vector<std::int64_t> share_concurrency(std::int64_t limit, double divisor,
                                            const std::vector<std::int64_t>& trials) {
  const auto brackets = static_cast<std::int64_t>(trials.size());
  if (limit == 0)
    return std::vector<std::int64_t>(trials.size(),
                                     std::max(trials.back(), static_cast<std::int64_t>(divisor)));
  const std::int64_t total = std::max(limit, brackets);
  std::vector<std::int64_t> shares;
  for (std::int64_t i = 0; i < brackets; ++i)
    shares.push_back(total / brackets + (i < total % brackets ? 1 : 0));
  return shares;
}

std::vector<std::int64_t> rungs_above(std::int64_t top, std::int64_t max_time, double divisor) {
  // Bounds the work for a divisor close to 1: 1.005 takes 7366 steps from 1 to 2^53.
  constexpr int kMaxSteps = 10'000;
  std::vector<std::int64_t> rungs;
  double next = static_cast<double>(top) * divisor;
  for (int steps = 0; steps < kMaxSteps && next < static_cast<double>(max_time); ++steps, next *= divisor)
    rungs.push_back(static_cast<std::int64_t>(next));
  rungs.push_back(max_time);
  rungs.erase(std::unique(rungs.begin(), rungs.end()), rungs.end());
  return rungs;
}

Result<std::vector<Bracket>> plan_brackets(const expconf::SearcherConfig& config, Fault fault) {
  const std::int64_t max_time = longest_training(config);
  if (max_time < 1)
    return fail(Code::kInvalidArgument, "searcher.max_time: is required: the longest training of a trial");
  if (!(config.divisor > 1) || !(config.divisor <= 1e9))
    return fail(Code::kInvalidArgument, "searcher.divisor: must be above 1 and at most 1000000000");
  const bool adaptive = config.name == "adaptive_asha";
  const auto rungs =
      adaptive ? bracket_rungs(config, max_time, fault) : std::vector<std::int64_t>{config.num_rungs};
  if (rungs.size() > kMaxBrackets || rungs.front() > kMaxBracketRungs || rungs.back() < 1)
    return fail(Code::kInvalidArgument, "searcher: must have 1 to 100 brackets of 1 to 100 rungs");
  std::vector<std::int64_t> trials{config.max_trials}, concurrency{config.max_concurrent_trials};
  if (adaptive) {
    trials = share_trials(config.max_trials, config.divisor, rungs);
    concurrency = share_concurrency(config.max_concurrent_trials, config.divisor, trials);
  } else if (config.max_concurrent_trials == 0) {
    concurrency = {power(config.divisor, config.num_rungs - 1, std::max<std::int64_t>(config.max_trials, 1))};
  }
  std::vector<Bracket> brackets;
  for (std::size_t i = 0; i < rungs.size(); ++i)
    brackets.push_back(
        {rung_lengths(rungs[i], max_time, Divisor(config.divisor)), trials[i], concurrency[i]});
  return brackets;
}

}  // namespace det::searcher
