// Surfaces for simulated searches: built-in learning curves and recorded ones.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/base/json.h"
#include "common/searcher/simulate.h"

namespace det::searcher {
namespace {

using expconf::Hyperparameter;
using Type = Hyperparameter::Type;
constexpr double kPi = 3.141592653589793;

/// Position along the leaf's range, 0 … 1. The choices of a categorical are spread evenly.
double position(const Hyperparameter& leaf, Sample::Value value) {
  if (leaf.type == Type::kCategorical) {
    const double last = static_cast<double>(leaf.values.size()) - 1;
    return last <= 0 ? 0 : static_cast<double>(value.whole) / last;
  }
  if (leaf.type == Type::kInt) {
    const double low = static_cast<double>(leaf.int_min), high = static_cast<double>(leaf.int_max);
    return high > low ? (static_cast<double>(value.whole) - low) / (high - low) : 0;
  }
  const double x = leaf.type == Type::kLog ? std::log(value.real) / std::log(leaf.base) : value.real;
  return leaf.max > leaf.min ? (x - leaf.min) / (leaf.max - leaf.min) : 0;
}

/// Position of the optimum of leaf i: irregular (golden ratio), in the middle 60 % of the range.
double optimum(std::size_t i) {
  return 0.2 + 0.6 * std::fmod(0.37 + 0.618033988749895 * static_cast<double>(i), 1.0);
}

double bowl(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - optimum(i)) * (x[i] - optimum(i));
  return sum / static_cast<double>(std::max<std::size_t>(x.size(), 1));
}

double valley(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    // Rosenbrock, scaled to x in 0 … 1.
    const double a = 4 * x[i] - 2, b = 4 * x[i + 1] - 1;
    sum += 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a);
  }
  return x.size() < 2 ? bowl(x) : std::log1p(sum) / 8;
}

double waves(const std::vector<double>& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    // Rastrigin: a bowl with cosine ripples.
    const double z = 4 * (x[i] - optimum(i));
    sum += z * z + 1 - std::cos(2 * kPi * z);
  }
  return sum / (6 * static_cast<double>(std::max<std::size_t>(x.size(), 1)));
}

/// Noise in -1 … 1, a function of trial and time only.
double noise(TrialNumber trial, double time) {
  Random random{std::uint64_t{trial} << 32 | 0x5EED, static_cast<std::uint64_t>(time)};
  return 2 * random.uniform() - 1;
}

/// Value of a curve at `time`, by linear interpolation; constant outside its range.
double at_time(const std::vector<std::pair<double, double>>& curve, double time) {
  const auto after = std::lower_bound(curve.begin(), curve.end(), time,
                                      [](const auto& point, double wanted) { return point.first < wanted; });
  if (after == curve.end()) return curve.back().second;
  if (after == curve.begin() || after->first == time) return after->second;
  const auto before = after - 1;
  return before->second +
         (after->second - before->second) * (time - before->first) / (after->first - before->first);
}

using Curves = std::vector<std::vector<std::pair<double, double>>>;

tl::unexpected<Error> unreadable(const std::string& what) {
  return fail(Code::kInvalidArgument, "recorded curves: " + what);
}

Result<Curves> curves_from_json(std::string_view text) {
  TRY_ASSIGN(const Json json, parse_json(text, {.bytes = 64 << 20}));
  Curves curves;
  for (const Json& list : json) {
    auto& curve = curves.emplace_back();
    for (const Json& point : list.is_array() ? list : Json::array()) {
      const bool pair = point.is_array() && point.size() == 2 && point[0].is_number();
      const auto metric = pair ? read_double(point[1]) : std::nullopt;
      if (!metric) return unreadable("a point must be [time, metric], got " + point.dump());
      curve.emplace_back(point[0].get<double>(), *metric);
    }
  }
  return curves;
}

Result<Curves> curves_from_csv(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string line;
  std::getline(lines, line);  // the header
  std::map<std::string, std::vector<std::pair<double, double>>> by_trial;
  std::vector<std::string> order;
  for (int number = 2; std::getline(lines, line); ++number) {
    if (line.empty() || line == "\r") continue;
    std::istringstream cells(line);
    std::string trial, time, metric;
    std::getline(cells, trial, ',');
    std::getline(cells, time, ',');
    std::getline(cells, metric);
    char *time_end = nullptr, *metric_end = nullptr;
    const double at = std::strtod(time.c_str(), &time_end), value = std::strtod(metric.c_str(), &metric_end);
    if (time_end == time.c_str() || metric_end == metric.c_str())
      return unreadable("line " + std::to_string(number) + " must be trial,time,metric, got \"" + line +
                        "\"");
    if (by_trial.count(trial) == 0) order.push_back(trial);
    by_trial[trial].emplace_back(at, value);
  }
  Curves curves;
  for (const std::string& trial : order) curves.push_back(std::move(by_trial[trial]));
  return curves;
}

}  // namespace

Result<Surface> make_surface(std::string_view name, const expconf::HyperparameterMap& space,
                             std::int64_t max_time) {
  double (*shape)(const std::vector<double>&) = nullptr;
  if (name == "bowl") shape = bowl;
  if (name == "valley") shape = valley;
  if (name == "waves") shape = waves;
  if (shape == nullptr)
    return fail(Code::kInvalidArgument,
                "no surface is named \"" + std::string(name) + "\"; use bowl, valley, waves or a file");
  const double pace = 20 / static_cast<double>(std::max<std::int64_t>(max_time, 1));
  return [shape, pace, along = leaves(space)](TrialNumber trial, const Sample& sample, double time) {
    std::vector<double> x(along.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = position(*along[i], sample.values[i]);
    // Distance to the floor falls as 1 / (1 + pace * time), to 1/21 at max_time; noise fades with it.
    const double floor = shape(x), left = 1 / (1 + pace * time);
    return floor + left * (1 - 0.5 * floor) + 0.02 * left * noise(trial, time);
  };
}

Result<Surface> recorded_surface(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '[';
  TRY_ASSIGN(auto curves, json ? curves_from_json(text) : curves_from_csv(text));
  if (curves.empty())
    return unreadable("there are none; write JSON [[[time, metric], ...], ...] or CSV trial,time,metric");
  for (auto& curve : curves) {
    if (curve.empty()) return unreadable("each curve needs at least one [time, metric]");
    // Interpolation needs points in order of time.
    std::stable_sort(curve.begin(), curve.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return [curves = std::move(curves)](TrialNumber trial, const Sample&, double time) {
    return at_time(curves[trial % curves.size()], time);
  };
}

}  // namespace det::searcher
