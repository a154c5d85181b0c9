// Preparation of an allocation: fetches and unpacks the context, builds the trial, and writes command and
// environment as the spec of the supervisor.
#pragma once

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/core/core.h"
#include "agent/data_dir.h"
#include "agent/environment.h"
#include "common/client/channel.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// Command of the master to start an allocation, with settings of the connection it came from.
struct Order {
  /// The command as received.
  v1::StartAllocation message;
  std::string cluster_id;
  /// SIGTERM to SIGKILL.
  Duration grace{};
  /// User of the task; nothing: that of the agent.
  std::optional<uid_t> uid = {};
};

/// Inputs shared by all preparations. Lives as long as the agent.
struct Site {
  /// Owned by the agent.
  const Settings& settings;
  const DataDir& data;
  std::vector<Device> devices;
  /// The installation, which contains bin/ and share/det/.
  std::string prefix;
  std::shared_ptr<grpc::Channel> channel;
  MasterTrust trust;
  /// Number of the agent's PortBlock.
  int port_block = 0;
  /// The build cache, shared with other programs of this user.
  std::string models;
  bool sandboxed = false;  ///< tasks and builds run in sandboxes
  /// Sandboxes have networks of their own; tasks reach the master by a relay (task/master_relay.h).
  bool own_network = false;
  std::optional<GroupPlace> groups = {};  ///< if tasks have limits
  std::string mps_pipes = {};             ///< directory of the MPS daemon, if slots share GPUs; "": none
  /// Called after a build without the precompiled header. Thread-safe.
  std::function<void()> header_missing = {};
};

/// Prepares `dir` and writes its spec.json; messages for the user go to its log. Returns nothing on success,
/// else the exit of the allocation. An allocation that only builds a trial class ends here, too. Blocks, for
/// minutes when it builds a model; returns early if `stop` is requested. Thread-safe for different
/// allocations.
std::optional<Exit> prepare(const Order& order, const TaskDir& dir, const Site& site, std::stop_token stop);

/// Returns the argument vector for an entrypoint that is no trial class. `hook`: run startup-hook.sh first.
/// `root`: directory of the files of the task's image, or "".
std::vector<std::string> task_command(const std::vector<std::string>& command, bool hook,
                                      const std::string& root = "");
/// Returns the argument vector that runs `script`, the hook of the pool, and then `command` in its
/// environment.
/// "": `command`.
std::vector<std::string> after_pool_hook(const std::string& script, std::vector<std::string> command);

}  // namespace det::agent
