// Environment variables of a task's processes. Pure.
#pragma once

#include <string>
#include <vector>

#include "agent/detect.h"
#include "det/v1/agent.pb.h"

namespace det::agent {

/// Facts of the agent that a task's environment depends on, beside the command of the master.
struct Surroundings {
  /// HOST:PORT or https://HOST:PORT, as configured.
  std::string master;
  std::string cluster_id;
  std::string agent_id;
  std::vector<Device> devices;
  int cpus = 1;
  int port_block = 0;  ///< number of a PortBlock
  /// Directories of the task; `programs` comes first in PATH.
  std::string workdir, run_dir, programs;
  std::string home;               ///< HOME of the task
  std::vector<std::string> base;  ///< the agent's own environment
  std::vector<std::string> pass;  ///< further names of `base` that the task gets
  /// Variables of the task's image, in place of those of `base` but for `pass`; nothing: no image.
  std::optional<std::vector<std::string>> image = {};
  std::string driver = {};  ///< directory of the GPU driver's libraries, beside those of the image; "": none
  std::string mps_pipes = {};  ///< directory of the MPS daemon, if slots share GPUs; "": none
  int slots_per_device = 1;
  /// Certificate file and name by which processes verify the master; "": not needed.
  std::string master_cert = {}, master_cert_name = {};
};

/// Returns the devices of the slots of a task.
std::vector<Device> devices_of(const v1::StartAllocation& order, const std::vector<Device>& devices);

/// Returns "http://HOST:PORT" for an address without scheme, as Determined AI's harness expects it.
std::string web_address(const std::string& master);

/// Returns the environment as NAME=value lines. Later sources override earlier ones: of the agent's own
/// variables PATH, locale, GPU settings and `pass`, or of those of an image, never DET_*; PATH, HOME, USER,
/// threads and devices of the slots; the user's variables; DET_*. `refused` receives the names of user
/// variables that are invalid or reserved (DET_*).
std::vector<std::string> task_environment(const v1::StartAllocation& order, const Surroundings& around,
                                          std::vector<std::string>& refused);

/// Returns the variables of a task that libraries may read when they are loaded, sorted: all but those that
/// name the task, its user and its ports.
std::vector<std::string> load_environment(std::vector<std::string> task);

}  // namespace det::agent
