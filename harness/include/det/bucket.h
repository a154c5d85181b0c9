// Owns reading objects of a bucket: data sets that lie in S3, in Google's store (by its XML interface), or in
// any other that speaks S3. Needs no LibTorch.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace det {

/// Requests are signed with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment
/// (of Google's store: an HMAC key's) in AWS_REGION; without them they are not, as public data wants it. What
/// fails in passing is tried again; what fails for good throws std::runtime_error naming bucket, key and the
/// mend. Any thread may call.
class Bucket {
 public:
  /// https://HOST/NAME, as in https://storage.googleapis.com/my-bucket. std::invalid_argument when it is no
  /// such address.
  explicit Bucket(const std::string& url);
  ~Bucket();
  Bucket(Bucket&&) noexcept;

  /// Keys that begin with `prefix`, sorted by their bytes.
  std::vector<std::string> list(const std::string& prefix) const;
  /// The object as a file at `path`, which is there whole or not at all. Folders are made.
  void fetch(const std::string& key, const std::string& path) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace det
