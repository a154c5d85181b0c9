// Keys of SSH clients.
#pragma once

#include <string>

#include "common/base/result.h"

namespace det {

/// Creates an ECDSA P-256 private key in the form that clients of SSH read: PEM, "EC PRIVATE KEY".
Result<std::string> make_ssh_key();
/// Returns the public key of make_ssh_key() as a line of OpenSSH, "TYPE BASE64". Errors: kInternal for
/// another text.
Result<std::string> ssh_public_key(const std::string& private_key);

}  // namespace det
