// Started by distributed_test as the ranks of a trial.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "det/distributed.h"

/// Modes: `exchange`; `killed N`: rank N dies by a signal while the others wait; `exits N`: rank N exits
/// early.
int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int victim = argc > 2 ? std::atoi(argv[2]) : -1;
  try {
    det::DistributedContext distributed(det::rank_info_from_environment(), 30);
    distributed.barrier();
    if (distributed.rank() == victim && mode == "killed") std::raise(SIGKILL);
    if (distributed.rank() == victim && mode == "exits") std::_Exit(3);
    const det::Json all = distributed.allgather(distributed.rank() * 10);
    std::printf("%s\n", all.dump().c_str());
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
}
