// Credentials of gRPC channels to the master. Target det_wire.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det {

/// TLS settings of a client: how it verifies the master, and the certificate that it presents.
struct MasterTrust {
  bool tls = false;  ///< false: plain text
  /// PEM file of certificates that are trusted for the master; "" means the system's; "noverify" disables
  /// verification.
  std::string cert_file;
  /// Name that the master's certificate must cover; "" means the host that is called.
  std::string cert_name;
  /// PEM files of the client's certificate and key; "" for none. Reloaded within 10 s of a change.
  std::string own_cert, own_key;
  /// Token of an agent that connects without TLS, sent with every call; "" for none.
  std::string own_token;
};

/// True if the address starts with "https://".
bool is_tls(std::string_view master);
/// Strips "http://" or "https://" from an address.
std::string without_scheme(std::string_view master);

/// Reads DET_MASTER_CERT_FILE and DET_MASTER_CERT_NAME; TLS follows the scheme of `master`.
MasterTrust trust_from_environment(std::string_view master);

/// Returns credentials for `trust` and sets the target name override in `arguments` if needed. Reads
/// cert_file.
/// Errors: those of read_file (common/base/files.h).
Result<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const MasterTrust& trust,
                                                                      grpc::ChannelArguments& arguments);

}  // namespace det
