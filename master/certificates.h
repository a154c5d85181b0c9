// Owns what the master proves itself with, and what it signs agents' certificates with.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "master/api/join.h"
#include "master/config/options.h"

namespace det {

struct Certificates {
  Identity server;  ///< `certificate` is the whole chain that clients are shown
  std::shared_ptr<const api::Authority> authority;
};

/// The authority of DATA_DIR/tls (ca.pem, and ca.key for its owner alone), made at the first start; and the
/// server's certificate: the operator's, or a new one of the authority at every start, whose key is in memory
/// only. Errors name the file or the setting.
Result<Certificates> load_certificates(const MasterConfig& config);

}  // namespace det
