// Settings of the master: the table of option keys, and the checked configuration read from them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/options.h"
#include "common/base/result.h"
#include "common/crypto/peer.h"
#include "common/storage/egress_policy.h"
#include "common/storage/policy.h"
#include "master/config/pools.h"

namespace det {

/// The option keys of det-master.
const OptionTable& master_options();

/// The checked configuration. The option table documents each setting.
struct MasterConfig {
  std::string data_dir;  ///< absolute path
  std::string listen_address;
  int listen_port = 8080;
  std::string database_url;  ///< "": run a private server
  std::string admin_password_file;
  std::string webui_dir;
  std::string cluster_name;
  std::string default_pool;
  /// Default of pools that are not in `pools`.
  SchedulerConfig scheduler;
  std::map<std::string, SchedulerConfig> pools;
  /// Pools with jobs of an engine as agents.
  std::map<std::string, ProviderConfig> providers;
  Json checkpoint_storage;  ///< default of experiments
  /// Defaults of tasks, and those of single pools, which override them.
  expconf::TaskDefaults task_defaults;
  std::map<std::string, expconf::TaskDefaults> pool_task_defaults;
  /// All settings in the layout of the configuration file. May contain secrets: mask before showing.
  Json shown;
  bool launch_error = true;
  bool task_user_tokens = false;
  bool shell_ssh = false;
  bool tasks_as_root = false;  ///< `default_task_user` is root
  std::string new_user_role;   ///< stored name: "NONE", "VIEWER" or "EDITOR"
  std::vector<std::string> allowed_host_paths;
  /// Storages that experiments may name, besides those of the database.
  storage::StoragePolicy storages;
  /// Storage hosts that the master may contact.
  storage::EgressPolicy storage_egress;
  /// Section webhooks.
  struct Webhooks {
    std::string signing_key, base_url;
    storage::EgressPolicy egress{};
  } webhooks;
  /// Settings that were read but have no effect.
  std::vector<Problem> warnings;
  LogOptions log;
  /// Section security.tls.
  struct Tls {
    bool enabled = false;
    /// Files of the operator's certificate; "": the master issues one itself.
    std::string cert, key;
    /// Further host names and addresses of an issued certificate.
    std::vector<std::string> names;
    Duration agent_lifetime{};  ///< lifetime of agents' certificates
  } tls;
  Duration agent_lease{}, agent_kill_grace{}, agent_margin{}, kill_repeat{}, heartbeat{}, session_lifetime{};
  Duration detached_limit{};
  /// Days; -1: logs are kept.
  std::int64_t log_retention_days = -1;
  /// Limits of concurrent connections, in total and from one address.
  int connections = 2000, connections_per_address = 64;
  std::string secrets_key_file;
  /// Reverse proxies with a trusted X-Forwarded-For.
  Networks trusted_proxies;
};

/// Reads and checks the options. Errors: kInvalidArgument with one problem for each invalid setting or
/// contradiction.
Result<MasterConfig> read_master_config(const Options& options);

}  // namespace det
