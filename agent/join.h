// Owns the agent's certificate: how it gets one from a join token, where it lies, and that it never runs out.
// Key and certificate are in DIR/tls, readable by the agent's user alone.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <thread>

#include "agent/config.h"
#include "base/queue.h"
#include "base/result.h"
#include "wire/channel.h"

namespace det::agent {

/// How the agent reaches its master: `settings` as they are, with the certificate of `directory`
/// (DATA_DIR/tls) when there is one. When there is none and a join token is given, joins first: the master
/// must show the certificate that the token names before it is told anything. Blocks. Safe to repeat after
/// any failure.
Result<MasterTrust> establish_trust(const Settings& settings, const std::string& directory);

/// Renews the certificate when a third of its life is left. One thread; does nothing without a certificate.
class Renewal {
 public:
  Renewal(std::shared_ptr<grpc::Channel> channel, const MasterTrust& trust, std::string agent_id);
  ~Renewal();

 private:
  void run();
  const std::shared_ptr<grpc::Channel> channel_;
  const MasterTrust trust_;
  const std::string agent_id_;
  Queue<int> stop_{1};  ///< closed at the end: what the thread waits on
  std::thread thread_;
};

}  // namespace det::agent
