// A Core API training program for tests: core_program SCENARIO STORAGE. STORAGE is a checkpoint directory or
// a configuration file (.yaml). Prints one line per result.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "det/core.h"

namespace {

using det::Json;

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// Unlocked directories beside checkpoints may be removed as abandoned.
bool is_locked(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

/// Each rank writes its own file and a shared one.
void shards(det::CoreContext& core, const std::string& scenario) {
  const int rank = core.distributed().rank();
  const std::string name = std::to_string(rank);
  Json metadata{{"steps_completed", 5}, {"rank" + name, rank}};
  if (scenario == "other-metadata") metadata["steps_completed"] = rank;
  if (scenario == "no-steps") metadata.erase("steps_completed");
  const auto stored = core.checkpoint().store_path(
      metadata,
      [&](const std::string& directory) {
        if (scenario == "one-fails" && rank == 1) throw std::runtime_error("the disk of rank 1 is on fire");
        std::cout << (is_locked(directory) ? "locked" : "not locked") << std::endl;
        put(directory + "/own" + name, "of rank " + name);
        put(directory + "/both", scenario == "other-content" ? "mine " + name : "the same");
        if (scenario == "file-and-directory") put(directory + "/mix" + (rank == 0 ? "" : "ed"), "");
      },
      /*shard=*/true);
  std::cout << "stored " << stored.uuid << std::endl;
  core.checkpoint().restore_path(stored.uuid, [&](const std::string& directory) {
    std::ifstream other(directory + "/own" + std::to_string(1 - rank));
    std::string text;
    std::getline(other, text);
    std::cout << "read " << text << std::endl;
  });
}

void upload(det::CoreContext& core, const std::string& directory) {
  const std::string uuid = core.checkpoint().upload(core.distributed().rank() < 2 ? directory : "",
                                                    {{"steps_completed", 7}}, true);
  std::cout << "stored " << uuid << std::endl;
}

void act(det::CoreContext& core, const std::string& scenario, const std::string& argument) {
  if (scenario == "report") {
    core.train().report_training_metrics(1, {{"loss", 0.5}});
    core.train().report_validation_metrics(1, {{"accuracy", 0.25}});
    core.train().report_progress(0.5);
  } else if (scenario == "preempt") {
    // The test interrupts the chief after it has printed "ready".
    std::cout << "ready" << std::endl;
    while (!core.preempt().should_preempt()) {
    }
    std::cout << "preempted" << std::endl;
  } else if (scenario == "upload" || scenario == "upload-uncaught") {
    upload(core, argument);
  } else if (scenario == "chief-alone") {
    core.checkpoint().upload("", {{"steps_completed", 1}});
  } else {
    shards(core, scenario);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  try {
    const std::string storage = argc > 2 ? argv[2] : "";
    const bool is_config = storage.ends_with(".yaml");
    det::CoreContext core =
        is_config ? det::init_core({.config_file = storage}) : det::init_core({.checkpoint_dir = storage});
    act(core, scenario, argc > 3 ? argv[3] : "");
    return 0;
  } catch (const std::exception& error) {
    if (scenario.ends_with("-uncaught")) throw;
    std::cout << "error: " << error.what() << std::endl;
    return 3;
  }
}
