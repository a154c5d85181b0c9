// Tunnels from users to ports of tasks. For each order of the master the agent connects to the port on
// loopback, or in the network of the task, and calls AgentService.Tunnel. One I/O thread for all tunnels; at
// most one message per direction is held.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/client/channel.h"
#include "det/v1/tunnel.pb.h"

namespace det::agent {

/// Checks a table in the form of /proc/net/tcp. Returns true if some socket listens on `port` and each of
/// these sockets belongs to `uid`.
bool listens_as(std::string_view table, int port, uid_t uid);

/// Thread-safe.
class Tunnels {
 public:
  /// `master` and `trust` as for open_channel() (link.h).
  Tunnels(std::string master, MasterTrust trust, std::string agent_id);
  /// Closes all tunnels.
  ~Tunnels();

  /// Connects to the port of the order. Only a listener of the user `uid` is accepted: the port of a task may
  /// have been taken by another program of the machine. Returns at once; the master gets the outcome.
  void open(const v1::OpenTunnel& order, uid_t uid);
  /// As open(), in the network of the task whose TaskDir is `directory`: all of its listeners are the task's.
  void open_inside(const v1::OpenTunnel& order, const std::string& directory);
  /// Answers an order with an error.
  void refuse(const v1::OpenTunnel& order, const std::string& error);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace det::agent
