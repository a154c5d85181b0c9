// Owns looking at whom one would speak TLS with, before any secret is said. (Target det_tls.)
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace det {

struct TlsPeer {
  std::vector<std::string> chain;  ///< PEM; the server's own first
  std::string problem;  ///< why it is not to be believed; "": the anchors vouch for it under this name
};

/// Shakes hands with a TLS server and hangs up. `anchors` is PEM; "" means the system's. `name` is the one
/// that the certificate must be for. kUnavailable when nobody answers, or something that does not speak TLS.
Result<TlsPeer> probe_tls(const std::string& host, int port, const std::string& name,
                          const std::string& anchors, Duration timeout);

}  // namespace det
