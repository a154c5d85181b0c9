// Owns how our programs reach the master: the credentials of their gRPC channels. (Target det_wire.)
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det {

/// Whom a client believes to be the master, and what it proves itself with.
struct MasterTrust {
  bool tls = false;
  std::string
      cert_file;  ///< PEM of what vouches for the master; "": what the system trusts; "noverify": anybody
  std::string cert_name;  ///< the name that its certificate is for; "": the host that is called
  std::string own_cert,
      own_key;  ///< files of the client's certificate; read again when they change; "": none
};

/// "https://host:1" and so on: what TLS it asks for, and the address without the scheme.
bool is_tls(std::string_view master);
std::string without_scheme(std::string_view master);

/// DET_MASTER_CERT_FILE and DET_MASTER_CERT_NAME of this process's environment.
MasterTrust trust_from_environment(std::string_view master);

/// kNotFound and so on when cert_file cannot be read. Adds to `arguments` what the trust asks for.
Result<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const MasterTrust& trust,
                                                                      grpc::ChannelArguments& arguments);

}  // namespace det
