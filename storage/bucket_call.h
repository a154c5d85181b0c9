// Owns what the parts of the bucket's client share: a call before it is signed.
#pragma once

#include "storage/bucket.h"

namespace det::storage {

struct Bucket::Call {
  std::string method, key;  ///< key "": the bucket itself
  std::map<std::string, std::string> query = {}, headers = {};
  std::string_view body = {};
  std::size_t most_bytes = 16 << 20;
  /// Takes the answer piece by piece. `rewind` is called before each attempt.
  std::function<bool(std::string_view)> sink = {};
  std::function<void()> rewind = {};
};

}  // namespace det::storage
