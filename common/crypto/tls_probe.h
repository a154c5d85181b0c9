// Inspects the certificate of a TLS server before any secret is sent to it. Target det_tls.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace det {

/// Certificates of a server and the outcome of their verification.
struct TlsPeer {
  std::vector<std::string> chain;  ///< PEM; the server's own certificate first
  std::string problem;             ///< why verification failed; "" if the chain is trusted for the name
};

/// Performs a TLS handshake and disconnects. A certificate that fails verification is not an error: see
/// TlsPeer::problem. `anchors` is PEM of trusted certificates; "" means the system's. `name` is the host name
/// or address that the certificate must cover. Blocks up to `timeout`.
/// Errors: kUnavailable (no connection, no TLS, timeout), kInvalidArgument (`anchors` is not PEM).
Result<TlsPeer> probe_tls(const std::string& host, int port, const std::string& name,
                          const std::string& anchors, Duration timeout);

}  // namespace det
