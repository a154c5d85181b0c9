// TLS identity of the master and the authority that signs agents' certificates.
#pragma once

#include <memory>
#include <string>

#include "common/base/result.h"
#include "master/api/accounts/join.h"
#include "master/config/options.h"

namespace det {

/// Result of load_certificates().
struct Certificates {
  /// `certificate` is the whole chain presented to clients.
  Identity server;
  std::shared_ptr<const api::Authority> authority;
};

/// Loads the authority from DATA_DIR/tls (ca.pem; ca.key, mode 0600) or creates it at the first start. The
/// server certificate is the operator's, or is issued by the authority at every start with a key that stays
/// in memory. Blocks on files. Errors name the file or the setting.
Result<Certificates> load_certificates(const MasterConfig& config);

}  // namespace det
