// Owns the words of det-launch's command line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace det {

struct LaunchOptions {
  bool help = false;
  int nproc_per_node = 1;
  int nnodes = 1, node_rank = 0;
  int first_rank = 0, world_size = 1;  ///< of this machine's first process; of all machines together
  std::string master_addr = "127.0.0.1";
  int master_port = 0;  ///< 0: one that is free on this machine
  std::vector<std::string> program;
};

/// `arguments` without the program's name; what they leave open comes from DET_SLOT_IDS, MASTER_ADDR (or
/// DET_CHIEF_IP), MASTER_PORT (or C10D_PORT), and what an agent says of a gang: DET_NUM_NODES, DET_NODE_RANK,
/// DET_FIRST_RANK, DET_WORLD_SIZE; read by `environment` (null: not set). Problems come one at a time, with
/// their mend.
Result<LaunchOptions> parse_launch_options(const std::vector<std::string>& arguments,
                                           const char* (*environment)(const char* name));

std::string launch_help();

}  // namespace det
