// A single HTTP request over libcurl. Connections are cached per thread. Redirects are not followed.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det::storage {

/// Identities of a TLS connection as PEM texts. Empty texts: the authorities of the system, no certificate.
struct TlsIdentity {
  std::string authorities, certificate, key;
};

/// An HTTP request.
struct Exchange {
  std::string method, url;
  std::map<std::string, std::string> headers;
  std::string_view body = {};  ///< must outlive the call
  /// Socket of a server on this machine, in place of the host of `url`; "": the host.
  std::string unix_socket = {};
  /// Receives the body of a 2xx response in pieces; false ends the request with kCancelled. Without a sink,
  /// the body is in Answer::body.
  std::function<bool(std::string_view)> sink = {};
  std::chrono::seconds connect_timeout{10};
  std::chrono::seconds stall_timeout{30};  ///< maximum time without a transferred byte
  /// True permits every address. False rejects hosts that resolve to loopback, link-local and metadata
  /// addresses (kFailedPrecondition).
  bool internal_allowed = true;
  /// With internal_allowed = false: addresses of private networks are permitted.
  bool private_allowed = true;
  std::size_t most_bytes = 16 << 20;  ///< limit on the body of a 2xx response; above it kResourceExhausted
  std::function<void()> moved = {};   ///< called when bytes were sent or received
  /// Polled about once a second; true ends the request with kUnavailable.
  std::function<bool()> expired = {};
  TlsIdentity tls = {};
};
/// An HTTP response.
struct Answer {
  int status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// Sends the request and returns the response, whatever its status. Blocks.
/// Errors: kUnavailable (no complete response), kCancelled, kResourceExhausted, kFailedPrecondition as
/// described above.
Result<Answer> exchange(const Exchange& request);

}  // namespace det::storage
