// Settings of the agent: the table of option keys and the checked values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/options.h"
#include "common/base/result.h"

namespace det::agent {

/// Kind of slots to offer. kAuto: CUDA devices if there are any, else CPUs.
enum class SlotType { kAuto, kCuda, kCpu, kNone };

/// Sandbox of tasks. kRequired: the agent does not start without a full one.
enum class SandboxMode { kOff, kBestEffort, kRequired };

/// Network of tasks. kCluster: the master and loopback only; kHost: that of the machine.
enum class TaskNetwork { kHost, kCluster };

/// A directory of the machine that all tasks see at the same path.
struct BindMount {
  std::string path;
  bool writable = false;  ///< tasks act as the owner of the directory
};

/// The checked settings. The option table documents each of them.
struct Settings {
  /// HOST:PORT, or https://HOST:PORT for TLS.
  std::string master;
  /// Used until the agent has joined.
  std::string join_token_file;
  /// Certificate file that vouches for the master, and the name it is issued to; "": as established by
  /// joining.
  std::string master_cert, master_cert_name;
  std::string data_dir;
  std::string id;
  std::string pool;  ///< "": the master's default pool
  SlotType slot_type = SlotType::kAuto;
  /// Number of slots that the CPUs are divided into.
  int cpu_slots = 1;
  int artificial_slots = 0;  ///< for tests; 0: real slots
  /// Number of slots that share each GPU through MPS.
  int slots_per_device = 1;
  /// Disk limit of the cache of contexts and built models, in bytes.
  std::int64_t cache_bytes = 0;
  /// From SIGTERM until the processes of allocations are ended.
  Duration stop_timeout{};
  /// The machine is taken away then.
  std::optional<WallTime> until;
  /// Time without allocations after which the agent leaves.
  std::optional<Duration> exit_when_idle;
  /// The master forgets the agent when it has left.
  bool ephemeral = false;
  /// Limit of one model build.
  Duration compile_timeout{};
  SandboxMode sandbox = SandboxMode::kBestEffort;
  TaskNetwork task_network = TaskNetwork::kHost;
  /// Limits of a task for each of its slots; a task without slots has those of one. 0: none.
  std::int64_t memory_per_slot = 0, cpu_millis_per_slot = 0;
  bool limits_tasks() const { return memory_per_slot > 0 || cpu_millis_per_slot > 0; }
  std::vector<BindMount> bind_mounts;
  std::string container_engine;               ///< path of its socket; "": tasks with an image are refused
  std::vector<std::string> image_registries;  ///< prefixes of images that may be pulled
  /// Users of tasks if the agent is root: `task_uid_count` from `task_uid_first`.
  std::uint32_t task_uid_first = 0, task_uid_count = 0;
  /// Names of further variables of the agent's environment that tasks get.
  std::vector<std::string> pass_environment;
  /// Argument vector that checks a CUDA device; empty: that of the installation.
  std::vector<std::string> device_check;
  LogOptions log;
};

/// The option keys of det-agent. deploy/agent.yaml is sample_config() of this table.
const OptionTable& option_table();
/// Reads and checks the options. Errors: kInvalidArgument with one problem for each invalid setting.
Result<Settings> read_settings(const Options& options);

}  // namespace det::agent
