// X.509 by OpenSSL: P-256 keys, a private certificate authority, signing requests, certificates,
// fingerprints. All values are PEM texts, for files and messages alike. Thread-safe. Target det_tls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace det {

/// A certificate and its private key. The key must never be logged or put into an error message.
struct Identity {
  std::string certificate;  ///< PEM
  std::string key;          ///< PEM, PKCS #8
};

/// Fields of a parsed certificate.
struct CertificateFacts {
  std::string fingerprint;  ///< SHA-256 of the DER form, 64 lower-case hexadecimal digits
  std::string subject;      ///< common name
  WallTime expires;         ///< notAfter
};

/// Creates a P-256 private key.
Result<std::string> make_private_key();
/// Creates a self-signed authority that may sign end-entity certificates only (path length 0).
Result<Identity> make_authority(const std::string& name, Duration lifetime);
/// Creates a server key and certificate for host names and numeric addresses (subjectAltName).
/// Errors: kInvalidArgument (no name, or one that is neither a host name nor an address).
Result<Identity> issue_server(const Identity& authority, const std::vector<std::string>& names,
                              Duration lifetime);
/// Creates a PKCS #10 signing request for `key`.
Result<std::string> make_request(const std::string& key, const std::string& name);
/// Signs a client certificate for the key of `request`. The subject is `name`; the name in the request is
/// ignored. The request must be signed with its own key, which proves possession. Errors: kInvalidArgument
/// (not a request, bad signature, or a key other than EC, Ed25519 or RSA >= 2048 bits).
Result<std::string> sign_client(const Identity& authority, const std::string& request,
                                const std::string& name, Duration lifetime);
/// Returns the SHA-256 (hexadecimal) of the request's public key in DER form.
Result<std::string> request_key_digest(const std::string& request);

/// Parses the first certificate of a PEM text. Errors: kInvalidArgument.
Result<CertificateFacts> read_certificate(std::string_view pem);
/// Splits a PEM text into its certificates, in order. Errors: kInvalidArgument (it has none).
Result<std::vector<std::string>> split_chain(std::string_view pem);
/// Formats a hexadecimal fingerprint for display: "AB:CD:...".
std::string shown_fingerprint(std::string_view fingerprint);

}  // namespace det
