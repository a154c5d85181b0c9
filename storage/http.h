// Owns one exchange of HTTP over libcurl. Connections are kept for the thread's next one. Follows no
// redirection.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det::storage {

struct Exchange {
  std::string method, url;
  std::map<std::string, std::string> headers;
  std::string_view body = {};  ///< outlives the call
  /// Takes the bytes of a 2xx answer as they come; false ends the exchange with kCancelled. Without it they
  /// are in Answer::body.
  std::function<bool(std::string_view)> sink = {};
  std::chrono::seconds connect_timeout{10};
  std::chrono::seconds stall_timeout{30};  ///< without a byte
  bool inner = true;  ///< else a host at an address of this machine or link is kFailedPrecondition
  std::size_t most_bytes = 16 << 20;  ///< of a 2xx answer's body; more is kResourceExhausted
  std::function<void()> moved = {};   ///< bytes went out or came in
  /// Asked about once a second: true ends the exchange with kUnavailable.
  std::function<bool()> give_up = {};
};
struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// Any status is an answer. kUnavailable with the reason when none came, or not all of it.
Result<Answer> exchange(const Exchange& request);

}  // namespace det::storage
