// Owns the sampling rule of each kind of hyperparameter.
#include "master/searcher/hyperparameters.h"

#include <cmath>

namespace det::searcher {
namespace {

/// Uniform over both ends, also when the range spans all 64 bits.
std::int64_t draw_int(std::int64_t low, std::int64_t high, Random& random) {
  const std::uint64_t count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t offset = count == 0 ? random.next() : random.below(count);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

double draw_double(double low, double high, Random& random) { return low + random.uniform() * (high - low); }

nlohmann::json draw(const expconf::Hyperparameter& parameter, Random& random) {
  using Type = expconf::Hyperparameter::Type;
  switch (parameter.type) {
    case Type::kConst:
      return parameter.value;
    case Type::kInt:
      return draw_int(parameter.int_min, parameter.int_max, random);
    case Type::kDouble:
      return draw_double(parameter.min, parameter.max, random);
    case Type::kLog:
      return std::pow(parameter.base, draw_double(parameter.min, parameter.max, random));
    case Type::kCategorical:
      return parameter.values.empty() ? nlohmann::json()
                                      : parameter.values[random.below(parameter.values.size())];
    case Type::kNested:
      return sample(parameter.children, random);
  }
  return nullptr;
}

}  // namespace

nlohmann::json sample(const expconf::HyperparameterMap& hyperparameters, Random& random) {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [name, parameter] : hyperparameters) values[name] = draw(parameter, random);
  return values;
}

}  // namespace det::searcher
