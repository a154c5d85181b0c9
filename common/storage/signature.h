// AWS Signature Version 4 for S3, after "Authenticating Requests: Using the Authorization Header" in the
// Amazon S3 API reference. Pure. libcurl 7.88 has an implementation, but it neither sorts queries nor encodes
// `?uploads`, `+` and `=` as S3 requires.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/storage/location.h"

namespace det::storage {

/// A request before any encoding.
struct Unsigned {
  std::string method;
  std::string path;                            ///< "/", or "/bucket/key"
  std::map<std::string, std::string> query;    ///< name to value; "" without a value
  std::map<std::string, std::string> headers;  ///< names in lower case; must contain "host"
  std::string payload_sha256;                  ///< of the body, 64 hexadecimal digits
};

/// Encodes everything but letters, digits and "-._~" as %XX. Keeps slashes on request.
std::string percent_encoded(std::string_view text, bool keep_slashes = false);
/// Returns the sorted, encoded query "a=1&b=", as it is signed and sent.
std::string encoded_query(const std::map<std::string, std::string>& query);

/// Signs all headers with the keys of `location`. Adds "x-amz-date", "x-amz-content-sha256", "authorization"
/// and, with a session token, "x-amz-security-token". `time` has the form "20130524T000000Z".
void sign(Unsigned& request, const Location& location, const std::string& time);

}  // namespace det::storage
