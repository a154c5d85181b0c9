// Unwraps a Result in a test. An error fails the test with its message.
#pragma once

#include <catch2/catch.hpp>

#include "common/base/result.h"

template <typename T>
T need(det::Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}
inline void need(const det::Status& status) {
  if (!status) FAIL(status.error().message);
}
