// Drawing of hyperparameters and their conversion to JSON, by kind.
#include "common/searcher/sample.h"

#include <cmath>

namespace det::searcher {
namespace {

using Type = expconf::Hyperparameter::Type;

void collect(const expconf::HyperparameterMap& space, std::vector<const expconf::Hyperparameter*>& leaves) {
  for (const auto& [name, parameter] : space) {
    if (parameter.type == Type::kNested)
      collect(parameter.children, leaves);
    else if (parameter.type != Type::kConst)
      leaves.push_back(&parameter);
  }
}

/// Uniform over [low, high], even if the range spans all 64 bits.
std::int64_t draw_int(std::int64_t low, std::int64_t high, Random& random) {
  // The count wraps to 0 for the full 64-bit range.
  const std::uint64_t count = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  const std::uint64_t offset = count == 0 ? random.next() : random.below(count);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

nlohmann::json value_of(const expconf::Hyperparameter& parameter, Sample::Value value) {
  if (parameter.type == Type::kInt) return value.whole;
  if (parameter.type != Type::kCategorical) return value.real;
  const auto index = static_cast<std::size_t>(value.whole);
  // An index out of range can only come from a damaged snapshot.
  return index < parameter.values.size() ? parameter.values[index] : nlohmann::json();
}

nlohmann::json fill(const expconf::HyperparameterMap& space, const Sample& sample, std::size_t& next) {
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, parameter] : space) {
    if (parameter.type == Type::kConst)
      result[name] = parameter.value;
    else if (parameter.type == Type::kNested)
      result[name] = fill(parameter.children, sample, next);
    else
      result[name] = value_of(parameter, sample.values.at(next++));
  }
  return result;
}

}  // namespace

std::vector<const expconf::Hyperparameter*> leaves(const expconf::HyperparameterMap& space) {
  std::vector<const expconf::Hyperparameter*> found;
  collect(space, found);
  return found;
}

Sample::Value draw(const expconf::Hyperparameter& parameter, Random& random) {
  Sample::Value value{};
  if (parameter.type == Type::kInt) {
    value.whole = draw_int(parameter.int_min, parameter.int_max, random);
  } else if (parameter.type == Type::kCategorical) {
    value.whole = static_cast<std::int64_t>(random.below(std::max<std::size_t>(parameter.values.size(), 1)));
  } else {
    value.real = parameter.min + random.uniform() * (parameter.max - parameter.min);
    if (parameter.type == Type::kLog) value.real = std::pow(parameter.base, value.real);
  }
  return value;
}

nlohmann::json hparams(const expconf::HyperparameterMap& space, const Sample& sample) {
  std::size_t next = 0;
  return fill(space, sample, next);
}

}  // namespace det::searcher
