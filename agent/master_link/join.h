// Identity of the agent, obtained with a join token and stored in DATA_DIR/tls with mode 0600: a certificate,
// which is renewed before it expires, or without TLS a token.
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

/// Returns the credentials for the master: `settings` plus the certificate or token in `directory`
/// (DATA_DIR/tls). If there is none, or the certificate has expired and there is a join token, joins the
/// cluster first; waits up to 30 s for a master that cannot be reached. With TLS the join token is sent only
/// to a master that presents the certificate pinned in it. Blocks. Idempotent, also after a failure. Errors:
/// kInvalidArgument (settings, token), kFailedPrecondition (no join token), kPermissionDenied (wrong master),
/// errors of files and of the master.
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
