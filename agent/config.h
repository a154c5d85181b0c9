// Owns the agent's settings: the table of keys (flags, environment, file) and what they mean together.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/options.h"
#include "base/result.h"

namespace det::agent {

enum class SlotType { kAuto, kCuda, kCpu, kNone };

struct Settings {
  std::string master;           ///< HOST:PORT, or https://HOST:PORT for one that speaks TLS
  std::string join_token_file;  ///< read when the agent has no certificate yet
  std::string master_cert,
      master_cert_name;  ///< what vouches for the master and under which name; "": as it joined
  std::string data_dir;
  std::string id;
  std::string pool;  ///< "": the master's default pool
  SlotType slot_type = SlotType::kAuto;
  int cpu_slots = 1;
  int artificial_slots = 0;  ///< 0: real ones
  std::int64_t cache_bytes = 0;
  Duration compile_timeout{};
  LogOptions log;
};

/// deploy/agent.yaml is sample_config(option_table()).
const OptionTable& option_table();
/// All that is wrong at once, naming keys and mends.
Result<Settings> read_settings(const Options& options);

}  // namespace det::agent
