// Owns AWS Signature Version 4 for S3: pure. (libcurl 7.88 has one of its own, which neither sorts queries
// nor encodes
// `?uploads`, `+` and `=` as a store does.) After "Authenticating Requests: Using the Authorization Header"
// of the Amazon S3 API reference.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "storage/location.h"

namespace det::storage {

/// A request as it is before any encoding.
struct Unsigned {
  std::string method;
  std::string path;                            ///< "/", or "/bucket/key"
  std::map<std::string, std::string> query;    ///< name → value, "" for none
  std::map<std::string, std::string> headers;  ///< names in lower case; "host" among them
  std::string payload_sha256;                  ///< 64 hexadecimal digits
};

/// Everything but letters, digits and "-._~" as %XX; also the slash unless it is kept.
std::string percent_encoded(std::string_view text, bool keep_slashes = false);
/// "a=1&b=": sorted and encoded, as it is signed and sent.
std::string encoded_query(const std::map<std::string, std::string>& query);

/// Adds "x-amz-date", "x-amz-content-sha256", "x-amz-security-token" and "authorization" to the headers.
/// `time` is "20130524T000000Z". Every header is signed.
void sign(Unsigned& request, const Location& location, const std::string& time);

}  // namespace det::storage
