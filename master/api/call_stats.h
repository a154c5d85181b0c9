// Owns the counters of what the master is asked: how often each method is called and how long it takes, and
// how much comes in. Since the start of the process; any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace det::api {

class CallStats {
 public:
  /// Upper bounds in seconds of the buckets of a latency histogram; the last bucket has none.
  static constexpr std::array<double, 8> kBounds{0.001, 0.005, 0.02, 0.05, 0.2, 1, 5, 30};

  struct Method {
    std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> buckets{};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<std::uint64_t> micros{0};
  };

  CallStats();  ///< knows the methods of services()
  /// One call from its arrival to its answer. Of a method that no service has: nothing.
  void took(std::string_view method, Duration duration, bool ok);
  const std::map<std::string, Method, std::less<>>& methods() const { return methods_; }

  std::atomic<std::uint64_t> metric_reports{0}, log_lines{0};

 private:
  std::map<std::string, Method, std::less<>> methods_;  ///< never changed after the constructor
};

}  // namespace det::api
