// The option keys of det-master and their checks.
#include "master/config/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/expconf/parse.h"
#include "master/config/storages.h"

namespace det {
namespace {

using Kind = OptionKey::Kind;

/// Collects problems.
struct Checker {
  std::vector<Problem> problems;
  void add(const std::string& path, const std::string& message) {
    problems.push_back({.code = "E-CFG-VALUE", .path = path, .message = message});
  }
  void positive(const std::string& path, Duration value) {
    if (value <= Duration(0)) add(path, "must be longer than 0s");
  }
};

/// Splits "127.0.0.1:8080" or "[::1]:8080". Returns false for anything but a numeric address and a port.
bool split_listen(const std::string& text, std::string& address, int& port) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  address = text.substr(0, colon);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, port);
  if (read.ec != std::errc() || read.ptr != end || port < 0 || port > 65535) return false;
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, address.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes) == 1;
}

/// Whether only this machine can connect to the address.
bool is_loopback_address(const std::string& address) {
  return address == "::1" || address.starts_with("127.");
}

/// Timers must be positive; the lease must survive lost heartbeats.
void check_timers(const MasterConfig& config, Checker& checker) {
  checker.positive("agent_lease", config.agent_lease);
  checker.positive("agent_kill_grace", config.agent_kill_grace);
  checker.positive("agent_margin", config.agent_margin);
  checker.positive("kill_repeat", config.kill_repeat);
  checker.positive("detached_limit", config.detached_limit);
  checker.positive("heartbeat", config.heartbeat);
  checker.positive("session_lifetime", config.session_lifetime);
  if (config.agent_lease < 3 * config.heartbeat) {
    checker.add("agent_lease",
                "must be at least three times heartbeat, or a healthy agent would end its own processes");
  }
}

void read_tls(const Options& options, MasterConfig& config, Checker& checker) {
  MasterConfig::Tls& tls = config.tls;
  tls.cert = options.text("security.tls.cert");
  tls.key = options.text("security.tls.key");
  if (tls.cert.empty() != tls.key.empty()) {
    checker.add(tls.cert.empty() ? "security.tls.cert" : "security.tls.key",
                "is missing: a certificate and its private key go together");
  }
  // A certificate alone implies TLS.
  tls.enabled = options.boolean("security.tls.enabled") || !tls.cert.empty();
  for (const std::string& name : split(options.text("security.tls.names"), ',')) {
    if (!trim(name).empty()) tls.names.emplace_back(trim(name));
  }
  tls.agent_lifetime = options.duration("security.tls.agent_lifetime");
  checker.positive("security.tls.agent_lifetime", tls.agent_lifetime);
  if (!tls.enabled && !config.listen_address.empty() && !is_loopback_address(config.listen_address) &&
      !options.boolean("insecure_i_understand")) {
    checker.add("listen", config.listen_address +
                              " is reachable from other machines, so TLS is needed: set security.tls.enabled "
                              "(--security-tls-enabled), or listen on 127.0.0.1");
  }
}

/// Reads a list of absolute directories.
std::vector<std::string> read_directories(const YamlNode& tree, const std::string& key, Checker& checker) {
  std::vector<std::string> directories;
  if (!tree.is_list()) checker.add(key, "must be a list of absolute directories");
  for (const YamlNode& item : tree.items) {
    if (item.kind == YamlNode::Kind::kString && item.text.starts_with('/')) {
      directories.push_back(item.text);
    } else {
      checker.add(key, "must be a list of absolute directories");
    }
  }
  return directories;
}

/// Task defaults in the layout of an experiment configuration, with the startup hook.
Json shown_defaults(const expconf::TaskDefaults& defaults) {
  Json shown = defaults.config;
  if (!defaults.startup_hook.empty()) shown["startup_hook"] = defaults.startup_hook;
  return shown;
}

/// The settings in the layout of the configuration file.
Json shown_settings(const Options& options, const MasterConfig& config) {
  // Trees are shown as resolved, with the defaults that the master adds.
  Json shown = settings_json(master_options(), options);
  shown["checkpoint_storage"] = config.checkpoint_storage;
  shown["task_container_defaults"] = shown_defaults(config.task_defaults);
  for (const auto& [name, defaults] : config.pool_task_defaults)
    for (Json& pool : shown["resource_pools"])
      if (pool.is_object() && pool["pool_name"] == name)
        pool["task_container_defaults"] = shown_defaults(defaults);
  return shown;
}

/// Reads the defaults of experiments and the limits of their configuration.
void read_experiment_defaults(const Options& options, MasterConfig& config, Checker& checker) {
  config.checkpoint_storage = {{"type", "shared_fs"}, {"host_path", config.data_dir + "/checkpoints"}};
  if (const YamlNode* tree = options.tree("checkpoint_storage")) {
    config.checkpoint_storage = to_json(*tree);
    // The same check as for a template: the section is partial.
    const auto checked =
        expconf::check_part(to_yaml({{"checkpoint_storage", config.checkpoint_storage}}), "");
    if (!checked) {
      for (const Problem& problem : checked.error().problems) checker.add(problem.path, problem.message);
    }
  }
  if (const YamlNode* tree = options.tree("task_container_defaults")) {
    auto defaults = expconf::read_task_defaults(*tree);
    if (defaults) {
      config.warnings = defaults->warnings;
      config.task_defaults = std::move(*defaults);
    } else {
      for (const Problem& problem : defaults.error().problems) checker.add(problem.path, problem.message);
    }
  }
  config.pool_task_defaults = read_pool_task_defaults(options, config.warnings, checker.problems);
  config.launch_error = options.boolean("launch_error");
  config.task_user_tokens = options.boolean("task_user_tokens");
  config.shell_ssh = options.boolean("shell_ssh");
  config.tasks_as_root = options.text("default_task_user") == "root";
  if (!config.tasks_as_root && !options.text("default_task_user").empty())
    checker.add("default_task_user", "must be empty or root");
  const std::string role = to_lower(options.text("new_user_role"));
  if (role != "none" && role != "viewer" && role != "editor")
    checker.add("new_user_role", "must be none, Viewer or Editor");
  config.new_user_role = role == "none" ? "NONE" : role == "viewer" ? "VIEWER" : "EDITOR";
  if (const YamlNode* tree = options.tree("allowed_host_paths"))
    config.allowed_host_paths = read_directories(*tree, "allowed_host_paths", checker);
}

/// Reads a list of hosts, separated by commas.
std::vector<std::string> read_hosts(const Options& options, const char* key, Checker& checker) {
  std::vector<std::string> hosts;
  for (const std::string& piece : split(options.text(key), ',')) {
    const std::string host(trim(piece));
    if (host.empty()) continue;
    if (host.find('/') != host.npos) checker.add(key, "must be names of hosts, without http:// and port");
    hosts.push_back(storage::host_of(host));
  }
  return hosts;
}

/// Reads the egress policy for object stores. The master's own default store is always allowed.
void read_egress_policy(const Options& options, MasterConfig& config, Checker& checker) {
  config.storage_egress.anywhere = false;
  const Json& storage = config.checkpoint_storage;
  const Json* own = storage.is_object() ? find_path(storage, "endpoint_url") : nullptr;
  if (own != nullptr && own->is_string()) config.storage_egress.own = own->get<std::string>();
  config.storage_egress.hosts = read_hosts(options, "allowed_storage_hosts", checker);
}

/// Reads section webhooks. Endpoints in private networks must be named.
void read_webhooks(const Options& options, MasterConfig& config, Checker& checker) {
  MasterConfig::Webhooks& webhooks = config.webhooks;
  webhooks.signing_key = options.text("webhooks.signing_key");
  webhooks.base_url = options.text("webhooks.base_url");
  while (webhooks.base_url.ends_with('/')) webhooks.base_url.pop_back();
  if (!webhooks.base_url.empty() && !webhooks.base_url.starts_with("http://") &&
      !webhooks.base_url.starts_with("https://"))
    checker.add("webhooks.base_url", "must begin with http:// or https://");
  webhooks.egress.anywhere = webhooks.egress.private_allowed = false;
  webhooks.egress.setting = "webhooks.allowed_hosts";
  webhooks.egress.hosts = read_hosts(options, "webhooks.allowed_hosts", checker);
}

/// Keys of section webhooks.
std::vector<OptionKey> webhook_keys() {
  return {
      {"webhooks.signing_key", Kind::kString, "",
       "Key of the signature (HMAC-SHA256) in the header X-Determined-AI-Signature of webhook requests. "
       "Empty: requests are not signed.",
       true},
      {"webhooks.base_url", Kind::kString, "",
       "Address of the web UI for links in messages, like https://det.example.org. Empty: no links."},
      {"webhooks.allowed_hosts", Kind::kString, "",
       "Hosts that webhooks may contact, separated by commas, at any address. Empty: all hosts except those "
       "at loopback, link-local and private addresses."},
  };
}

/// Keys of section security.tls.
std::vector<OptionKey> tls_keys() {
  return {
      {"security.tls.enabled", Kind::kBool, "false",
       "Accept only TLS, with security.tls.cert or a certificate of the master's own authority "
       "(DATA_DIR/tls)."},
      {"security.tls.cert", Kind::kString, "",
       "File with the certificate and its chain (PEM). Implies security.tls.enabled."},
      {"security.tls.key", Kind::kString, "", "File with the private key of security.tls.cert (PEM)."},
      {"security.tls.names", Kind::kString, "",
       "Additional host names and addresses in the generated certificate, separated by commas. Name and "
       "addresses of this machine are included."},
      {"security.tls.agent_lifetime", Kind::kDuration, "30d",
       "Lifetime of an agent's certificate. Agents renew it when a third remains."},
  };
}

std::vector<OptionKey> limit_keys() {
  return {
      {"heartbeat", Kind::kDuration, "2s",
       "Interval between agent heartbeats. Three missed heartbeats end the connection."},
      {"agent_lease", Kind::kDuration, "10m",
       "Time without contact after which an agent ends its allocations."},
      {"agent_kill_grace", Kind::kDuration, "10s",
       "Time between SIGTERM and SIGKILL for the processes of an allocation."},
      {"agent_margin", Kind::kDuration, "10s",
       "Time beyond lease and kill grace after which trials of a silent agent are rescheduled."},
      {"kill_repeat", Kind::kDuration, "30s", "Interval after which an unacknowledged kill is repeated."},
      {"detached_limit", Kind::kDuration, "5m",
       "Time without a report after which a detached trial has failed. Detached trials report ten times as "
       "often."},
      {"session_lifetime", Kind::kDuration, "7d", "Lifetime of a login."},
      {"log_retention_days", Kind::kInt, "-1",
       "Days after the end of a trial or command until its log is deleted, unless its configuration sets "
       "retention_policy. -1: never."},
      {"connections", Kind::kInt, "2000", "Maximum number of connections."},
      {"connections_per_address", Kind::kInt, "64",
       "Maximum number of connections from one address. This machine and trusted_proxies are exempt."},
      {"secrets_key_file", Kind::kString, "",
       "File with the keys that encrypt stored secrets; masters that share a database share it. Empty: "
       "secrets.key in data_dir."},
      {"trusted_proxies", Kind::kString, "",
       "Networks of reverse proxies, separated by commas (10.0.0.5, fd00::/8). X-Forwarded-For of their HTTP "
       "requests names the client in limits, login throttling and the audit log."},
      {"log.level", Kind::kString, "info", "Level of the log: trace, debug, info, warn or error."},
      {"log.json", Kind::kBool, "false", "Write one JSON object per line."},
      {"log.file", Kind::kString, "", "File to append the log to. Empty: standard error."},
  };
}

/// Keys of resource pools.
std::vector<OptionKey> pool_keys() {
  return {
      {"default_resource_pool", Kind::kString, "default",
       "Resource pool of agents and experiments that set none."},
      {"scheduler", Kind::kTree, "",
       "Scheduling of the pools: type (priority, fair_share or round_robin; default: priority) and "
       "preemption (default: true)."},
      {"resource_pools", Kind::kTree, "",
       "Pools with other scheduling, or with agents that run as jobs of an engine (Slurm or Kubernetes): a "
       "list of maps with pool_name, scheduler, provider and task_container_defaults (override the "
       "master's). "
       "Keys of provider: type (agents, the default, "
       "slurm or kubernetes), pilot (shared, the default: a job runs trials one after the other, or "
       "per_allocation: a job for each run of a trial, for sites that forbid jobs that wait for work), "
       "max_pilots (jobs that wait or run; default 1), slots_per_node (required), "
       "max_nodes (of a job; default 1), idle_timeout (default 5m), agent (program; default det-agent), "
       "walltime (default: none, or the limit of Slurm's partition), min_time_left (no trial starts on a job "
       "that ends sooner; default 2m). Of slurm only: agent_config "
       "(configuration file on the nodes; required), partition, qos, account, constraint, gres, and "
       "sbatch_options (a list of further options of sbatch; {slots} in both is the number of slots that are "
       "used on a node), or instead of the commands of Slurm rest_url (of slurmrestd), rest_user, "
       "rest_token_file, rest_version (v0.0.38, the default, to v0.0.42) and rest_job (a map of further "
       "fields). Of "
       "kubernetes only: image, master (address "
       "for the agents), join_token_secret (Secret with key token; these three are required), kubeconfig "
       "(default: the service account of the master's pod), context, namespace, resources, node_selector, "
       "tolerations, priority_class, labels, agent_arguments, queue (of Kueue, or of Volcano with gang: "
       "volcano), gang (plain, "
       "pod_group: PodGroups of Kubernetes 1.36 or newer, or volcano; default plain), grace (from SIGTERM to "
       "SIGKILL; default 60s), start_timeout (a pilot with only some of its nodes is then released; "
       "default 10m), and pod_template (merged into the pods)."},
  };
}

OptionTable all_options() {
  OptionTable table{
      .program = "det-master",
      .summary =
          "The master of a Determinant cluster: stores experiments, schedules trials, serves API and web UI.",
      .env_prefix = "DET_MASTER_",
      .keys = {
          {"data_dir", Kind::kString, "", "Data directory of the master (required). Created if absent."},
          {"listen", Kind::kString, "127.0.0.1:8080",
           "Address and port of gRPC, JSON API and web UI. Port 0 selects a free port."},
          {"insecure_i_understand", Kind::kBool, "false",
           "Allow connections from other machines without TLS. Passwords and tokens are then readable on the "
           "network."},
          {"database_url", Kind::kString, "",
           "PostgreSQL (13 or newer) as libpq connection string. Empty: run a private server in data_dir.",
           true},
          {"admin_password_file", Kind::kString, "",
           "File with the password of the user admin, read at the first start. Empty: generate one and write "
           "it to DATA_DIR/admin-password."},
          {"webui_dir", Kind::kString, "",
           "Directory of the web UI. Empty: share/det/webui of the installation."},
          {"cluster_name", Kind::kString, "", "Name of the cluster, shown to users."},
          {"checkpoint_storage", Kind::kTree, "",
           "Default of checkpoint_storage of experiments. Empty: shared_fs at DATA_DIR/checkpoints."},
          {"task_container_defaults", Kind::kTree, "",
           "Defaults of experiments: image, environment_variables, registry_auth, force_pull_image, "
           "add_capabilities, drop_capabilities, devices, shm_size_bytes, bind_mounts, log_policies, "
           "preemption_timeout, and startup_hook (shell script to run before each task)."},
          {"launch_error", Kind::kBool, "true",
           "Reject experiments with trials that fit no agent. false: accept them with a warning; they wait. "
           "Commands may then name such slots in templates only."},
          {"task_user_tokens", Kind::kBool, "false",
           "Give the processes of tasks a token of their owner (DET_USER_TOKEN). It has at most the rights "
           "of an Editor and ends with the allocation."},
          {"shell_ssh", Kind::kBool, "false",
           "Give each new shell a key for ssh, as Determined AI does. The SSH server of a running shell is "
           "then reached without a login to the master; it admits the owner of the key."},
          {"default_task_user", Kind::kString, "",
           "User that tasks without an agent user see themselves as: empty for a user of their own, or root, "
           "as in Determined AI and in many images. Neither has rights on the machine."},
          {"new_user_role", Kind::kString, "Editor",
           "Role of new users in the default workspace: none, Viewer or Editor."},
          {"allowed_host_paths", Kind::kTree, "",
           "Directories of agents that experiments may mount, with subdirectories. Empty: any."},
          {"storages", Kind::kTree, "",
           "Storages that experiments may use by name (checkpoint_storage: {name: NAME}): a list of maps "
           "with name, type, the location and keys as in checkpoint_storage, and per_workspace (true: each "
           "workspace has a directory or prefix of its own)."},
          {"allowed_storage_paths", Kind::kString, "",
           "Directories that experiments may name in checkpoint_storage (shared_fs, directory), with "
           "subdirectories, separated by commas. Empty: only the master's checkpoint_storage and "
           "`storages`."},
          {"allowed_storage_buckets", Kind::kString, "",
           "Buckets that experiments may name in checkpoint_storage (s3), separated by commas: "
           "s3://BUCKET/PREFIX or https://HOST/BUCKET/PREFIX. Empty: as above."},
          {"allowed_storage_hosts", Kind::kString, "",
           "Hosts that experiments may use in endpoint_url, separated by commas, at any address. Empty: all "
           "hosts except loopback and link-local addresses."},
      }};
  // The TLS keys follow insecure_i_understand in the help text and the sample file.
  const auto tls = tls_keys();
  table.keys.insert(table.keys.begin() + 3, tls.begin(), tls.end());
  const auto pools = pool_keys();
  const auto before = std::find_if(table.keys.begin(), table.keys.end(),
                                   [](const OptionKey& key) { return key.name == "checkpoint_storage"; });
  table.keys.insert(before, pools.begin(), pools.end());
  const auto webhooks = webhook_keys();
  table.keys.insert(table.keys.end(), webhooks.begin(), webhooks.end());
  const auto limits = limit_keys();
  table.keys.insert(table.keys.end(), limits.begin(), limits.end());
  return table;
}

}  // namespace

const OptionTable& master_options() {
  static const OptionTable table = all_options();
  return table;
}

Result<MasterConfig> read_master_config(const Options& options) {
  MasterConfig config;
  Checker checker;
  config.data_dir = options.text("data_dir");
  if (config.data_dir.empty()) {
    checker.add("data_dir", "is required: name a directory with --data-dir");
  } else {
    config.data_dir = std::filesystem::absolute(config.data_dir).lexically_normal().string();
    if (config.data_dir.size() > 1 && config.data_dir.ends_with('/')) config.data_dir.pop_back();
  }
  if (!split_listen(options.text("listen"), config.listen_address, config.listen_port)) {
    checker.add("listen",
                "must be a numeric address and a port, like 127.0.0.1:8080, got " + options.text("listen"));
  }
  read_tls(options, config, checker);
  config.database_url = options.text("database_url");
  config.admin_password_file = options.text("admin_password_file");
  config.webui_dir = options.text("webui_dir");
  // The web UI is installed relative to the program.
  if (config.webui_dir.empty()) {
    config.webui_dir =
        (std::filesystem::path(program_path()).parent_path().parent_path() / "share/det/webui").string();
  }
  config.cluster_name = options.text("cluster_name");
  config.default_pool = options.text("default_resource_pool");
  if (config.default_pool.empty()) checker.add("default_resource_pool", "must not be empty");
  config.scheduler = read_scheduler(options, checker.problems);
  config.pools = read_pools(options, config.scheduler, checker.problems);
  config.providers = read_providers(options, checker.problems);
  read_experiment_defaults(options, config, checker);
  config.storages = read_storages(options, config.checkpoint_storage, config.data_dir, checker.problems);
  read_egress_policy(options, config, checker);
  read_webhooks(options, config, checker);
  config.shown = shown_settings(options, config);
  config.heartbeat = options.duration("heartbeat");
  config.agent_lease = options.duration("agent_lease");
  config.agent_kill_grace = options.duration("agent_kill_grace");
  config.agent_margin = options.duration("agent_margin");
  config.kill_repeat = options.duration("kill_repeat");
  config.detached_limit = options.duration("detached_limit");
  config.session_lifetime = options.duration("session_lifetime");
  check_timers(config, checker);
  for (const char* name : {"connections", "connections_per_address"}) {
    if (options.integer(name) < 1 || options.integer(name) > 1'000'000)
      checker.add(name, "must be within 1 and 1000000");
  }
  config.log_retention_days = options.integer("log_retention_days");
  if (config.log_retention_days < -1 || config.log_retention_days > 32767)
    checker.add("log_retention_days", "must be from -1 to 32767");
  config.connections = static_cast<int>(options.integer("connections"));
  config.connections_per_address = static_cast<int>(options.integer("connections_per_address"));
  config.secrets_key_file = options.text("secrets_key_file").empty() ? config.data_dir + "/secrets.key"
                                                                     : options.text("secrets_key_file");
  std::vector<std::string> proxies;
  for (const std::string& one : split(options.text("trusted_proxies"), ','))
    if (!trim(one).empty()) proxies.emplace_back(trim(one));
  auto networks = Networks::parse(proxies);
  if (!networks) checker.add("trusted_proxies", networks.error().message);
  if (networks) config.trusted_proxies = std::move(*networks);
  auto level = parse_log_level(options.text("log.level"));
  if (!level) checker.add("log.level", level.error().message);
  config.log = {.level = level.value_or(LogLevel::kInfo),
                .json = options.boolean("log.json"),
                .file = options.text("log.file"),
                .program = "master"};
  if (!checker.problems.empty()) return fail(std::move(checker.problems));
  return config;
}

}  // namespace det
