// Conversion of errors to exceptions, for the border between Result and the public API.
#pragma once

#include <stdexcept>
#include <utility>

#include "common/base/result.h"

namespace det {

/// Throws std::runtime_error with the message of an error.
inline void ok_or_throw(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}
/// Returns the value, or throws std::runtime_error with the message of the error.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace det
