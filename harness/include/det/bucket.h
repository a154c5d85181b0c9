// Reads objects of an S3-compatible bucket (Amazon S3, Google Cloud Storage by its XML interface, and
// others), for data sets. Independent of LibTorch.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace det {

/// A bucket of an S3-compatible store.
///
/// Requests are signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment
/// (for Google Cloud Storage: an HMAC key), in the region AWS_REGION. Without these variables requests are
/// anonymous, as public data requires. Transient failures are retried with back-off; permanent ones throw
/// std::runtime_error with the bucket, the key and a remedy. Thread-safe. All calls block.
class Bucket {
 public:
  /// `url` is https://HOST/NAME, for example https://storage.googleapis.com/my-bucket. Throws
  /// std::invalid_argument for any other form. Sends no request.
  explicit Bucket(const std::string& url);
  ~Bucket();
  Bucket(Bucket&&) noexcept;

  /// Returns the keys that begin with `prefix`, sorted bytewise.
  std::vector<std::string> list(const std::string& prefix) const;
  /// Downloads an object of at most 1 GiB to the file `path`. The file appears atomically, complete or not at
  /// all. Missing directories are created. The object is held in memory during the call.
  void fetch(const std::string& key, const std::string& path) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
