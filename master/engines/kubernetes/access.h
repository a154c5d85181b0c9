// Address and credentials of an API server: from a kubeconfig, or from the service account of a pod.
#pragma once

#include <string>

#include "common/base/result.h"
#include "common/storage/http.h"
#include "master/config/pools.h"

namespace det::engines {

/// Address and credentials of an API server.
struct Access {
  std::string server;      ///< URL without a slash at its end
  std::string name_space;  ///< namespace of the pilots
  std::string token;       ///< bearer token; "": none
  storage::TlsIdentity tls;
};

/// Reads the kubeconfig of a provider, or the service account in `account` (the directory of its files).
/// Tokens expire, so each call reads the files again. Errors: kFailedPrecondition (a file is missing, or has
/// settings that are not supported) with the file and the key.
Result<Access> read_access(const ProviderConfig& config,
                           const std::string& account = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace det::engines
