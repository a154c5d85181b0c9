// Owns where a bucket of an S3-compatible store is and whose keys open it.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace det::storage {

struct Location {
  std::string bucket;
  std::string prefix;    ///< of all keys; no slash at its ends; "" is the whole bucket
  std::string endpoint;  ///< http[s]://host[:port]; "": Amazon's of the region
  std::string region = "us-east-1";
  std::string access_key, secret_key, session_token;  ///< without the first two requests are not signed

  /// `s3://bucket/prefix`: what users are shown.
  std::string name() const;
};

/// True of a `checkpoint_storage` whose type is s3.
bool is_bucket(const Json& storage);

/// From a `checkpoint_storage` of type s3. What it does not say, and keys that are masked in it, come from
/// this process's environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; AWS_REGION or
/// AWS_DEFAULT_REGION. kInvalidArgument naming the field.
Result<Location> read_location(const Json& storage);

/// From https://HOST/BUCKET, and the environment.
Result<Location> location_of_url(const std::string& url);

/// "" or what is wrong with the address of a store: it must be http[s]://host[:port] and no more.
std::string check_endpoint(const std::string& endpoint);
/// "" or what is wrong with the name of a bucket: 3 to 63 letters, digits, dots, hyphens and underscores.
std::string check_bucket_name(const std::string& bucket);

}  // namespace det::storage
