// Owns what lies between an order and a process: the context fetched, unpacked, built; the command and its
// environment written down as the supervisor's spec.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/config.h"
#include "agent/core/core.h"
#include "agent/data_dir.h"
#include "agent/environment.h"
#include "det/v1/agent.pb.h"
#include "wire/channel.h"

namespace det::agent {

struct Order {
  v1::StartAllocation message;
  std::string cluster_id;
  Duration grace{};
};

/// What all preparations share; lives as long as the agent.
struct Site {
  const Settings& settings;
  const DataDir& data;
  std::vector<Device> devices;
  std::string prefix;  ///< the installation: bin/ and share/det/ are in it
  std::shared_ptr<grpc::Channel> channel;
  MasterTrust trust;
  int port_block = 0;
};

/// Leaves `dir` with its spec.json; what the user should read of it is in its log. Nothing on success, else
/// how the allocation ends. Blocks, for minutes when something is built; ends early when `stop` is asked for.
/// Any thread.
std::optional<Exit> prepare(const Order& order, const TaskDir& dir, const Site& site, std::stop_token stop);

/// The argv for an entrypoint that is no trial class. Startup hook first, when `hook` is true.
std::vector<std::string> task_command(const std::vector<std::string>& command, bool hook);

}  // namespace det::agent
