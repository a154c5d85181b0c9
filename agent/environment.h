// Owns the environment of a task's processes. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/detect.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// What the agent knows beside the order.
struct Surroundings {
  std::string master;  ///< HOST:PORT, as the agent itself reaches it
  std::string cluster_id;
  std::string agent_id;
  std::vector<Device> devices;
  int cpus = 1;
  int port_block = 0;                      ///< agent/ports.h
  std::string workdir, run_dir, programs;  ///< `programs`: put first in PATH
  std::vector<std::string> base;           ///< the agent's own environment
  std::string master_cert = "",
              master_cert_name = "";  ///< what processes believe the master by; "": nothing to say
};

/// "http://HOST:PORT", as upstream's harness wants its master.
std::string web_address(const std::string& master);

/// The agent's own variables less its DET_ ones, then threads and devices of the slots, then the user's, then
/// DET_*. `refused` receives the names of user variables that are no names or are reserved (DET_*).
std::vector<std::string> task_environment(const v1::StartAllocation& order, const Surroundings& around,
                                          std::vector<std::string>& refused);

}  // namespace det::agent
