#include "common/storage/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/base/secret.h"
#include "common/crypto/digest.h"

namespace det::storage {
namespace {

std::string hmac(std::string_view key, std::string_view text) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(out.data()), &size);
  out.resize(size);
  return out;
}

/// Removes spaces at both ends and collapses repeated spaces, as the signature requires.
std::string canonical_value(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos || (keep_slashes && c == '/')) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%', out += kDigits[byte >> 4], out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string encoded_query(const std::map<std::string, std::string>& query) {
  // Must be sorted by encoded name. All names in use are unreserved characters, so the order of the map is
  // that order.
  std::string out;
  for (const auto& [name, value] : query) {
    if (!out.empty()) out += '&';
    out += percent_encoded(name) + "=" + percent_encoded(value);
  }
  return out;
}

void sign(Unsigned& request, const Location& location, const std::string& time) {
  request.headers["x-amz-date"] = time;
  request.headers["x-amz-content-sha256"] = request.payload_sha256;
  if (!location.session_token.empty()) request.headers["x-amz-security-token"] = location.session_token;
  // Canonical request: method, path, query, headers, names of the signed headers, payload digest.
  std::string headers, names;
  for (const auto& [name, value] : request.headers) {
    headers += name + ":" + canonical_value(value) + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = request.method + "\n" + percent_encoded(request.path, true) + "\n" +
                                encoded_query(request.query) + "\n" + headers + "\n" + names + "\n" +
                                request.payload_sha256;
  const std::string day = time.substr(0, 8), scope = day + "/" + location.region + "/s3/aws4_request";
  const std::string text = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256_hex(canonical);
  // The signing key is derived from the secret by day, region and service, so the secret itself signs
  // nothing.
  const std::string key =
      hmac(hmac(hmac(hmac("AWS4" + location.secret_key, day), location.region), "s3"), "aws4_request");
  request.headers["authorization"] = "AWS4-HMAC-SHA256 Credential=" + location.access_key + "/" + scope +
                                     ",SignedHeaders=" + names + ",Signature=" + to_hex(hmac(key, text));
}

}  // namespace det::storage
