// Trust in a master that speaks TLS. Certificates that the user accepts are stored in
// ${XDG_CONFIG_HOME:-~/.config}/det/certs, one file per master.
#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"
#include "common/client/address.h"

namespace det {
struct MasterTrust;
}

namespace det::cli {

/// Shows a yes/no question and returns the answer.
using Confirm = std::function<Result<bool>(const std::string& question)>;

/// Sets the prompt for unknown certificates. Without one (in a script, in a library) they are rejected.
/// Process-wide; call before the first connection.
void set_confirm(Confirm confirm);

/// Returns the trust for this address, the first of: DET_MASTER_CERT_FILE (set by --cert-file), the
/// certificate that the user accepted earlier, the system's authorities.
MasterTrust known_trust(const Address& address);

/// Checks that the master's certificate is trusted. Otherwise shows its SHA-256 fingerprint, prompts the user
/// and stores the certificate when it is accepted. Sends no credentials. Succeeds for an unreachable master:
/// the first call reports that. Errors: kUnauthenticated (not accepted, or issued for another name; the
/// message names a remedy), kFailedPrecondition (no home directory). Blocks for at most 10 s per probe.
Status establish_trust(const Address& address);

}  // namespace det::cli
