// Command line options of det-launch.
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

namespace det {

/// Options of a launch on this machine.
struct LaunchOptions {
  bool help = false;
  /// Processes on this machine.
  int nproc_per_node = 1;
  /// Number of machines, and index of this one.
  int nnodes = 1, node_rank = 0;
  int first_rank = 0, world_size = 1;  ///< rank of this machine's first process; processes on all machines
  /// Host of rank 0.
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  ///< 0: a free port of this machine
  /// Program and arguments of every process.
  std::vector<std::string> program;
};

/// Parses the arguments (without the program's name). Missing options come from DET_SLOT_IDS, MASTER_ADDR (or
/// DET_CHIEF_IP), MASTER_PORT (or C10D_PORT) and, in a gang, from DET_NUM_NODES, DET_NODE_RANK,
/// DET_FIRST_RANK and DET_WORLD_SIZE; `environment` returns null for a variable that is not set. Errors:
/// kInvalidArgument with the first problem and a remedy.
Result<LaunchOptions> parse_launch_options(const std::vector<std::string>& arguments,
                                           const char* (*environment)(const char* name));

/// The text of --help.
std::string launch_help();

}  // namespace det
