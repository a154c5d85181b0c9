// Internal to the bucket client: a request before signing.
#pragma once

#include "common/storage/bucket.h"

namespace det::storage {

/// A request to the bucket. Path and query are not encoded yet.
struct Bucket::Call {
  std::string method, key;  ///< key "": the bucket itself
  std::map<std::string, std::string> query = {}, headers = {};
  std::string_view body = {};         ///< request body; must outlive the call
  std::size_t most_bytes = 16 << 20;  ///< limit on the response body
  /// Receives the response body in pieces instead of the result; false cancels the request.
  std::function<bool(std::string_view)> sink = {};
  /// Called before each attempt: discards what `sink` received from an earlier one.
  std::function<void()> rewind = {};
};

}  // namespace det::storage
