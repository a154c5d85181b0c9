// Network of a task in a sandbox with a network namespace of its own. A listener made inside is served by a
// process outside, so that no packet crosses the namespaces:
//
//   task ── 127.0.0.1:kRelayPort ──> relay, a child of det-supervisor ──> master
//   agent ── TaskDir::ports() ──> det-task-init, which connects inside and returns the socket
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/result.h"

namespace det::agent {

/// Port of the relay on the loopback interface of a task. Above the range of ports that Linux assigns.
constexpr int kRelayPort = 62'080;
/// Connections of one task to the master at a time. Further ones are closed.
constexpr int kMaxRelayed = 256;

/// Returns a listener on kRelayPort in the network namespace of this process.
Result<UniqueFd> listen_for_relay();

/// Forks the relay: each connection to `listener` is connected to `master` (HOST:PORT) from the network of
/// this process. The relay runs as `uid` (if set), confined (common/sandbox/confine.h), and is killed with
/// this process, which must be single-threaded. Returns its pid.
Result<pid_t> start_relay(const UniqueFd& listener, const std::string& master, std::optional<uid_t> uid);

/// Copies bytes between two sockets, in both directions, until both have ended or one has failed. The end of
/// one direction does not end the other. Holds at most 128 KiB. Blocks.
void copy_both(UniqueFd a, UniqueFd b);

/// Returns the listener for the agent in the TaskDir `directory`.
Result<UniqueFd> listen_for_ports(const std::string& directory);

/// Accepts a connection of the agent on `listener`, receives "connect PORT" and answers "connected" with a
/// socket that is connected to this port on loopback, or "failed MESSAGE". Blocks for at most 2 s.
void serve_port_request(int listener);

/// Sends "connect PORT" to the task with the TaskDir `directory`. The answer arrives on the returned socket.
/// Errors: the task has no network of its own, or has ended.
Result<UniqueFd> request_port(const std::string& directory, int port);

}  // namespace det::agent
