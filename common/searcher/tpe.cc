// Tree-structured Parzen estimator (TPE): proposes trials near good ones and away from bad ones.
//
// Bergstra, Bardenet, Bengio, Kégl: "Algorithms for Hyper-Parameter Optimization", NIPS 2011, section 4:
// maximizing p(x | good) / p(x | bad) maximizes the expected improvement. Falkner, Klein, Hutter: "BOHB",
// ICML 2018, section 3.2: one kernel density over all leaves together, fitted to the longest training length
// with enough results, and one third of the points random.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>

#include "common/base/json.h"
#include "common/searcher/sampler.h"

namespace det::searcher {
namespace {

using expconf::Hyperparameter;
using Type = Hyperparameter::Type;

constexpr double kRandomShare = 1.0 / 3;
constexpr double kGoodShare = 0.15;
constexpr std::size_t kMaxGood = 25;     ///< kernels of the good density
constexpr std::size_t kMaxRecent = 100;  ///< results kept beside the best; the oldest is dropped
constexpr int kCandidates = 24;
constexpr double kMinBandwidth = 0.02;
/// Factor on Scott's bandwidth: good points are rarely one normal distribution.
constexpr double kNarrow = 0.5;
constexpr double kRootTwoPi = 2.5066282746310002;

using Point = std::vector<double>;  ///< by leaf: position 0 … 1 in its range, or the index of a categorical

/// Result of a trial. Ordered by score, then by trial number.
struct Seen {
  double score;
  TrialNumber trial;
  bool operator<(const Seen& other) const {
    return score != other.score ? score < other.score : trial < other.trial;
  }
};

/// Results at one training length: the best ones and the latest of the others.
struct Level {
  std::vector<Seen> best;  ///< ascending, at most kMaxGood
  std::deque<Seen> others;
  std::int64_t count = 0;

  void add(Seen seen) {
    if (!improve(best, seen) && !improve(others, seen)) {
      ++count;
      best.push_back(seen);
    }
    std::sort(best.begin(), best.end());
    if (best.size() <= kMaxGood) return;
    // Overflow of the best goes to the others, of which only the latest are kept.
    others.push_back(best.back());
    best.pop_back();
    if (others.size() > kMaxRecent) others.pop_front();
  }

 private:
  /// Improves the score of a trial that is already in the list. Returns false if it is not there.
  template <typename List>
  static bool improve(List& list, Seen seen) {
    for (Seen& known : list) {
      if (known.trial != seen.trial) continue;
      known.score = std::min(known.score, seen.score);
      return true;
    }
    return false;
  }
};

/// Kernel density over whole points: a product of normal kernels, and for choices of a mix with the uniform
/// distribution.
class Density {
 public:
  Density(const std::vector<const Hyperparameter*>& leaves, std::vector<const Point*> points)
      : leaves_(leaves), points_(std::move(points)) {
    const auto n = static_cast<double>(points_.size());
    const double shrink = std::pow(n, -1.0 / (4 + static_cast<double>(leaves_.size())));
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      double mean = 0, square = 0;
      for (const Point* point : points_) mean += (*point)[i] / n;
      for (const Point* point : points_) square += ((*point)[i] - mean) * ((*point)[i] - mean) / n;
      const bool choice = leaves_[i]->type == Type::kCategorical;
      bandwidths_.push_back(choice ? std::min(0.5, shrink)
                                   : std::max(kNarrow * std::sqrt(square) * shrink, kMinBandwidth));
    }
  }

  double log_at(const Point& x) const {
    // Uniform prior with the weight of one point: far from all points neither density wins.
    double sum = 1;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i]->type == Type::kCategorical)
        sum /= static_cast<double>(std::max<std::size_t>(leaves_[i]->values.size(), 1));
    }
    for (const Point* point : points_) {
      double distance = 0, weight = 1;
      for (std::size_t i = 0; i < leaves_.size(); ++i) {
        if (leaves_[i]->type == Type::kCategorical) {
          weight *= (*point)[i] == x[i] ? 1 - bandwidths_[i] + share(i) : share(i);
        } else {
          const double z = ((*point)[i] - x[i]) / bandwidths_[i];
          distance += z * z;
          weight /= bandwidths_[i] * kRootTwoPi;
        }
      }
      sum += weight * std::exp(-distance / 2);
    }
    return std::log(sum / static_cast<double>(points_.size() + 1));
  }

  Point draw(Random& random) const {
    Point x = *points_[random.below(points_.size())];
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i]->type != Type::kCategorical) {
        x[i] = inside(x[i] + bandwidths_[i] * normal(random));
      } else if (random.uniform() < bandwidths_[i]) {
        x[i] = static_cast<double>(random.below(std::max<std::size_t>(leaves_[i]->values.size(), 1)));
      }
    }
    return x;
  }

 private:
  double share(std::size_t leaf) const {
    return bandwidths_[leaf] / static_cast<double>(std::max<std::size_t>(leaves_[leaf]->values.size(), 1));
  }
  /// Reflects x into 0 … 1, so that the density has no bias at the ends of a range.
  static double inside(double x) {
    x = std::fmod(std::fabs(x), 2.0);
    return x > 1 ? 2 - x : x;
  }
  /// A standard normal deviate (Box, Muller 1958).
  static double normal(Random& random) {
    const double u = 1 - random.uniform(), v = random.uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

  const std::vector<const Hyperparameter*>& leaves_;
  std::vector<const Point*> points_;
  std::vector<double> bandwidths_;
};

class TpeSampler final : public Sampler {
 public:
  explicit TpeSampler(const expconf::HyperparameterMap& space) : leaves_(leaves(space)) {}

  Sample next(Random& random) override {
    const Level* level = model();
    if (level == nullptr || leaves_.empty() || random.uniform() < kRandomShare) return uniform(random);
    const auto good = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::ceil(kGoodShare * static_cast<double>(level->count))), least_good(),
        level->best.size() - 1);
    std::vector<const Point*> near, far;
    for (std::size_t i = 0; i < level->best.size(); ++i)
      (i < good ? near : far).push_back(&points_[level->best[i].trial]);
    for (const Seen& seen : level->others) far.push_back(&points_[seen.trial]);
    const Density like_good(leaves_, std::move(near)), like_bad(leaves_, std::move(far));
    Point best;
    double best_gain = 0;
    for (int i = 0; i < kCandidates; ++i) {
      Point candidate = like_good.draw(random);
      const double gain = like_good.log_at(candidate) - like_bad.log_at(candidate);
      if (!best.empty() && gain <= best_gain) continue;
      best = std::move(candidate);
      best_gain = gain;
    }
    return to_sample(best);
  }

  void created(TrialNumber, const Sample& sample) override { points_.push_back(to_point(sample)); }
  void observe(TrialNumber trial, std::int64_t length, double score) override {
    levels_[length].add({score, trial});
  }
  nlohmann::json snapshot() const override;
  Status restore(const nlohmann::json& snapshot) override;

 private:
  std::size_t least_good() const { return std::min<std::size_t>(leaves_.size() + 1, 6); }
  /// The results at the longest training length that has enough of them; null if there is none.
  const Level* model() const {
    const auto enough = static_cast<std::int64_t>(std::max<std::size_t>(20, 5 * least_good()));
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      if (level->second.count >= enough) return &level->second;
    }
    return nullptr;
  }
  Sample uniform(Random& random) const {
    Sample sample;
    for (const Hyperparameter* leaf : leaves_) sample.values.push_back(draw(*leaf, random));
    return sample;
  }
  Point to_point(const Sample& sample) const;
  Sample to_sample(const Point& point) const;

  std::vector<const Hyperparameter*> leaves_;
  std::vector<Point> points_;             ///< by trial number
  std::map<std::int64_t, Level> levels_;  ///< by training length
};

Point TpeSampler::to_point(const Sample& sample) const {
  Point point(leaves_.size());
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const Hyperparameter& leaf = *leaves_[i];
    const Sample::Value value = sample.values[i];
    const double low = leaf.type == Type::kInt ? static_cast<double>(leaf.int_min) : leaf.min;
    const double high = leaf.type == Type::kInt ? static_cast<double>(leaf.int_max) + 1 : leaf.max;
    if (leaf.type == Type::kCategorical)
      point[i] = static_cast<double>(value.whole);
    else if (leaf.type == Type::kInt)
      point[i] = (static_cast<double>(value.whole) + 0.5 - low) / (high - low);
    else if (leaf.type == Type::kDouble)
      point[i] = (value.real - low) / (high - low);
    else
      point[i] = (std::log(value.real) / std::log(leaf.base) - low) / (high - low);
  }
  return point;
}

Sample TpeSampler::to_sample(const Point& point) const {
  Sample sample;
  sample.values.resize(leaves_.size());
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const Hyperparameter& leaf = *leaves_[i];
    Sample::Value& value = sample.values[i];
    const double x = std::clamp(point[i], 0.0, 1.0);
    if (leaf.type == Type::kCategorical) {
      value.whole = static_cast<std::int64_t>(point[i]);
    } else if (leaf.type == Type::kInt) {
      // In unsigned arithmetic and clamped before the cast: a range may span all 64 bits.
      const auto width = static_cast<std::uint64_t>(leaf.int_max) - static_cast<std::uint64_t>(leaf.int_min);
      const double offset = std::floor(x * (static_cast<double>(width) + 1));
      const std::uint64_t steps =
          offset >= static_cast<double>(width) ? width : static_cast<std::uint64_t>(offset);
      value.whole = static_cast<std::int64_t>(static_cast<std::uint64_t>(leaf.int_min) + steps);
    } else {
      value.real = leaf.min + x * (leaf.max - leaf.min);
      if (leaf.type == Type::kLog) value.real = std::pow(leaf.base, value.real);
    }
  }
  return sample;
}

template <typename List>
nlohmann::json seen_to_json(const List& list) {
  nlohmann::json json = nlohmann::json::array();
  for (const Seen& seen : list) json.push_back({seen.score, seen.trial});
  return json;
}

template <typename List>
bool read_seen(const nlohmann::json& json, std::size_t trials, List& list) {
  if (!json.is_array()) return false;
  for (const auto& item : json) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_number() || !item[1].is_number_unsigned() ||
        item[1].get<std::uint64_t>() >= trials)
      return false;
    list.push_back({item[0].get<double>(), item[1].get<TrialNumber>()});
  }
  return true;
}

nlohmann::json TpeSampler::snapshot() const {
  nlohmann::json levels = nlohmann::json::array(), points = nlohmann::json::array();
  for (const auto& [length, level] : levels_)
    levels.push_back({length, level.count, seen_to_json(level.best), seen_to_json(level.others)});
  for (const Point& point : points_) {
    for (double x : point) points.push_back(x);
  }
  return {{"trials", points_.size()}, {"points", std::move(points)}, {"levels", std::move(levels)}};
}

Status TpeSampler::restore(const nlohmann::json& snapshot) {
  const auto damaged = fail(Code::kDataLoss, "stored search: what the sampler has seen is damaged");
  if (!snapshot.is_object() || !snapshot.contains("trials") || !snapshot["trials"].is_number_unsigned() ||
      !snapshot.contains("points") || !snapshot["points"].is_array() || !snapshot.contains("levels") ||
      !snapshot["levels"].is_array())
    return damaged;
  const auto trials = snapshot["trials"].get<std::size_t>();
  const auto& points = snapshot["points"];
  if (leaves_.empty() ? !points.empty()
                      : points.size() / leaves_.size() != trials || points.size() % leaves_.size() != 0)
    return damaged;
  points_.assign(trials, Point(leaves_.size()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].is_number()) return damaged;
    points_[i / leaves_.size()][i % leaves_.size()] = points[i].get<double>();
  }
  for (const auto& json : snapshot["levels"]) {
    if (!json.is_array() || json.size() != 4 || !json[0].is_number_integer() || !json[1].is_number_integer())
      return damaged;
    Level& level = levels_[json[0].get<std::int64_t>()];
    level.count = json[1].get<std::int64_t>();
    if (!read_seen(json[2], trials, level.best) || !read_seen(json[3], trials, level.others)) return damaged;
  }
  return {};
}

}  // namespace

std::unique_ptr<Sampler> make_tpe_sampler(const expconf::HyperparameterMap& space) {
  return std::make_unique<TpeSampler>(space);
}

}  // namespace det::searcher
