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

/// Returns the trust for this address, the first of: DET_MASTER_CERT_FILE (set by --cert-file), the
/// certificate that the user accepted earlier, the system's authorities.
MasterTrust known_trust(const Address& address);

/// Checks that the master's certificate is trusted. Otherwise shows its SHA-256 fingerprint, prompts the user
/// and stores the certificate when it is accepted. Without a prompt (null) it is rejected. Sends no
/// credentials. Succeeds for an unreachable master: the first call reports that. Errors: kUnauthenticated
/// (not accepted, or issued for another name; the message names a remedy), kFailedPrecondition (no home
/// directory). Blocks for at most 10 s per probe.
Status establish_trust(const Address& address, const Confirm& confirm);

}  // namespace det::cli
