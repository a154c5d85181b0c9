// Typed access to the experiment configuration, with the defaults of the field tables in common/expconf. The
// configuration of a run without a cluster may be incomplete.
#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/base/json.h"

namespace det {

/// Returns the value at a dotted path; if it is unset or null, the default of the field; null without one.
const Json* find_setting(const Json& config, std::string_view path);

/// The same as a T: bool, std::int64_t, double or std::string. Throws std::invalid_argument for a value of
/// another kind.
template <typename T>
std::optional<T> optional_setting(const Json& config, std::string_view path) {
  const Json* value = find_setting(config, path);
  if (value == nullptr) return std::nullopt;
  bool fits = value->is_string();
  if constexpr (std::same_as<T, bool>) {
    fits = value->is_boolean();
  } else if constexpr (std::integral<T>) {
    fits = value->is_number_integer();
  } else if constexpr (std::floating_point<T>) {
    fits = value->is_number();
  }
  if (!fits)
    throw std::invalid_argument(std::string(path) + ": " + dump_json(*value) + " is of the wrong kind");
  return value->get<T>();
}
/// The same for a field that has a default.
template <typename T>
T setting(const Json& config, std::string_view path) {
  return optional_setting<T>(config, path).value();
}

}  // namespace det
