// Owns whom the command believes to be the master when it speaks TLS. What the user once trusted is kept in
// ${XDG_CONFIG_HOME:-~/.config}/det/certs, a file for each master.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/address.h"

namespace det {
struct MasterTrust;
}

namespace det::cli {

/// Asks the user a question that is answered with yes or no.
using Confirm = std::function<Result<bool>(const std::string& question)>;

/// How users are asked; nobody is, until it is set (a library, a script). Before the first master is called.
void set_confirm(Confirm confirm);

/// Whom to believe at this address, in this order: DET_MASTER_CERT_FILE (--cert-file sets it), what was
/// trusted before, what the system trusts.
MasterTrust known_trust(const Address& address);

/// Makes sure that somebody vouches for the master: when nobody does, the user is shown the certificate's
/// fingerprint and asked, and what is trusted is kept. kUnauthenticated names the mend. Nothing is said to a
/// master that is not believed; one that is away is believed until it is there.
Status establish_trust(const Address& address);

}  // namespace det::cli
