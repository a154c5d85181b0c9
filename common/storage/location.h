// Location and credentials of a bucket in an S3-compatible store.
#pragma once

#include <string>

#include "common/base/json.h"
#include "common/base/result.h"

namespace det::storage {

/// A bucket, the key prefix in it, and how to reach it.
struct Location {
  std::string bucket;
  std::string prefix;    ///< of all keys, without slashes at its ends; "" is the whole bucket
  std::string endpoint;  ///< http[s]://host[:port]; "" means Amazon's endpoint of the region
  std::string region = "us-east-1";
  /// Credentials. Requests are not signed if access_key is empty.
  std::string access_key, secret_key, session_token;

  /// Returns `s3://bucket/prefix` for display.
  std::string name() const;
};

/// True if a `checkpoint_storage` configuration has type s3.
bool is_bucket(const Json& storage);

/// Parses a `checkpoint_storage` of type s3. Missing or masked keys come from AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; the region comes from AWS_REGION or AWS_DEFAULT_REGION.
/// Errors: kInvalidArgument naming the field.
Result<Location> read_location(const Json& storage);

/// Parses https://HOST/BUCKET; credentials and region come from the environment. Errors: kInvalidArgument.
Result<Location> location_of_url(const std::string& url);

/// Returns "" or why the endpoint is invalid: it must be http[s]://host[:port].
std::string check_endpoint(const std::string& endpoint);
/// Returns "" or why the name is invalid: it must have 3 to 63 letters, digits, dots, hyphens and
/// underscores.
std::string check_bucket_name(const std::string& bucket);

}  // namespace det::storage
