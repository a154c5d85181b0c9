// Counters of API calls for the metrics endpoint, since the start of the process. Any thread; no locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace det::api {

/// Calls and latencies by method. All counters are monotonic.
class CallStats {
 public:
  /// Upper bounds of the latency histogram in seconds. The last bucket is unbounded.
  static constexpr std::array<double, 8> kBounds{0.001, 0.005, 0.02, 0.05, 0.2, 1, 5, 30};

  /// One latency histogram. The sum of all buckets is the number of calls.
  struct Method {
    std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> buckets{};
    std::atomic<std::uint64_t> failed{0};
    /// Total duration in microseconds.
    std::atomic<std::uint64_t> micros{0};
  };

  /// Creates an entry for each method of services().
  CallStats();
  /// Records one call and its duration from arrival to reply. Ignores unknown methods.
  void took(std::string_view method, Duration duration, bool ok);
  /// By path, "/det.v1.AuthService/Login".
  const std::map<std::string, Method, std::less<>>& methods() const { return methods_; }

  // Metric reports and log lines stored by processes of trials.
  std::atomic<std::uint64_t> metric_reports{0}, log_lines{0};

 private:
  /// Constant after construction, so that lookups need no lock.
  std::map<std::string, Method, std::less<>> methods_;
};

}  // namespace det::api
