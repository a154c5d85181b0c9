// Certificate of the agent: obtained with a join token, stored in DATA_DIR/tls with mode 0600, renewed before
// it expires.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <thread>

#include "agent/config.h"
#include "common/base/event.h"
#include "common/base/result.h"
#include "common/client/channel.h"

namespace det::agent {

/// Returns the credentials for the master: `settings` plus the certificate in `directory` (DATA_DIR/tls). If
/// there is none and a join token is configured, joins the cluster first. The token is sent only to a master
/// that presents the certificate pinned in the token. Blocks. Idempotent, also after a failure. Errors:
/// kInvalidArgument (settings, token), kPermissionDenied (wrong master), errors of files and of the master.
Result<MasterTrust> establish_trust(const Settings& settings, const std::string& directory);

/// Renews the certificate when a third of its lifetime is left, on one thread. Does nothing without a
/// certificate.
class Renewal {
 public:
  Renewal(std::shared_ptr<grpc::Channel> channel, const MasterTrust& trust, std::string agent_id);
  ~Renewal();

 private:
  // Body of the thread.
  void run();
  const std::shared_ptr<grpc::Channel> channel_;
  const MasterTrust trust_;
  const std::string agent_id_;
  Event stop_;
  std::thread thread_;
};

}  // namespace det::agent
