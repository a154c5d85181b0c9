// Owns X.509: keys (P-256), a certificate authority of one's own, requests, certificates and their
// fingerprints. All in PEM, so that files and messages hold the same thing. (Target det_tls.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace det {

/// A certificate and its private key. The key never goes into a log, an error or a message.
struct Identity {
  std::string certificate;  ///< PEM
  std::string key;          ///< PEM, PKCS #8
};

/// What is worth knowing of a certificate.
struct CertificateFacts {
  std::string fingerprint;  ///< SHA-256 of the DER form, 64 lower-case hexadecimal digits
  std::string subject;      ///< the common name
  WallTime expires;
};

/// A new private key.
Result<std::string> make_private_key();
/// An authority that vouches for itself, with the right to sign others.
Result<Identity> make_authority(const std::string& name, Duration lifetime);
/// A server's certificate for host names and numeric addresses. kInvalidArgument without a name.
Result<Identity> issue_server(const Identity& authority, const std::vector<std::string>& names,
                              Duration lifetime);
/// What the holder of `key` sends to be given a certificate.
Result<std::string> make_request(const std::string& key, const std::string& name);
/// A client's certificate for the key of `request`, whose signature must be good (the sender holds the key);
/// the name is ours to say, not the request's. kInvalidArgument for what is no request, or one with a weak
/// key.
Result<std::string> sign_client(const Identity& authority, const std::string& request,
                                const std::string& name, Duration lifetime);
/// SHA-256 (hexadecimal) of the public key of a request.
Result<std::string> request_key_digest(const std::string& request);

Result<CertificateFacts> read_certificate(std::string_view pem);
/// The certificates of a PEM text, in order. kInvalidArgument when there is none.
Result<std::vector<std::string>> split_chain(std::string_view pem);
/// True when `pem` was signed by `authority` and is within its time.
bool vouches_for(std::string_view authority, std::string_view pem);
/// "AB:CD:…" as people compare it.
std::string shown_fingerprint(std::string_view fingerprint);

}  // namespace det
