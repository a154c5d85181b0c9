// Owns what an operator can set of the master: the table of keys, and the checked settings that come of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "base/result.h"
#include "master/config/pools.h"
#include "storage/reach.h"

namespace det {

const OptionTable& master_options();

struct MasterConfig {
  std::string data_dir;  ///< absolute
  std::string listen_address;
  int listen_port = 8080;
  std::string database_url;  ///< "": a private server
  std::string admin_password_file;
  std::string webui_dir;
  std::string cluster_name;
  std::string default_pool;
  SchedulerConfig scheduler;  ///< of pools that are not in `pools`
  std::map<std::string, SchedulerConfig> pools;
  Json checkpoint_storage;       ///< default of experiments
  Json task_container_defaults;  ///< likewise, in the form of their configuration
  Json shown;  ///< every setting as the file would have it; secrets of trees are still in it
  bool launch_error = true;
  std::vector<std::string> allowed_host_paths;
  storage::Reach storage_reach;   ///< which buckets the master contacts
  std::vector<Problem> warnings;  ///< what was read and does nothing
  LogOptions log;
  struct Tls {
    bool enabled = false;
    std::string cert, key;           ///< files of the operator's own certificate; "": ours
    std::vector<std::string> names;  ///< that our certificate is for, beside this machine's own
    Duration agent_lifetime{};       ///< of agents' certificates
  } tls;
  Duration agent_lease{}, agent_kill_grace{}, agent_margin{}, kill_repeat{}, heartbeat{}, session_lifetime{};
  Duration unmanaged_limit{};
  std::int64_t log_retention_days = -1;
  int connections = 2000, connections_per_address = 64;
};

/// All contradictions at once, as kInvalidArgument with one problem each.
Result<MasterConfig> read_master_config(const Options& options);

}  // namespace det
