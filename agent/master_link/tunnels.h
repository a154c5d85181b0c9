// Tunnels from users to ports of tasks, to shells and to SSH servers in them. For each order of the master
// the agent connects to the port on loopback, or in the network of the task, or starts a shell, and calls
// AgentService.Tunnel. One I/O thread for all tunnels; at most one message per direction is held.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/client/channel.h"
#include "common/task/task_dir.h"
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

  /// Connects to the port of the order, or starts its shell or SSH server in the allocation of `dir`. Only a
  /// listener of the user `uid` is accepted: the port of a task may have been taken by another program of the
  /// machine. Without `uid` the port is one in the network of the task, where all listeners are its own.
  /// Returns at once; the master gets the outcome.
  void open(const v1::OpenTunnel& order, std::optional<uid_t> uid, const TaskDir& dir);
  /// Answers an order with an error.
  void refuse(const v1::OpenTunnel& order, const std::string& error);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace det::agent
