// Key `provider` of resource pools.
#include <algorithm>
#include <cctype>

#include "common/base/text.h"
#include "common/base/units.h"
#include "master/config/provider_reader.h"

namespace det {
namespace {

/// Keys of a provider of type slurm.
const std::vector<std::string>& provider_keys() {
  static const std::vector<std::string> keys{
      "type",           "pilot",    "max_pilots",   "slots_per_node",  "max_nodes",
      "idle_timeout",   "agent",    "agent_config", "walltime",        "min_time_left",
      "partition",      "qos",      "account",      "constraint",      "gres",
      "sbatch_options", "rest_url", "rest_user",    "rest_token_file", "rest_version",
      "rest_job"};
  return keys;
}

/// Options of sbatch that the master sets itself, without the leading hyphens.
const std::vector<std::string>& own_options() {
  static const std::vector<std::string> options{
      "parsable",   "job-name", "nodes", "ntasks", "ntasks-per-node", "requeue",  "array",
      "no-requeue", "wait",     "wrap",  "time",   "export",          "test-only"};
  return options;
}

/// Reads the keys of slurmrestd.
void read_rest(ProviderReader& reader, ProviderConfig& config) {
  reader.text("rest_url", config.rest_url);
  reader.text("rest_user", config.rest_user);
  reader.text("rest_token_file", config.rest_token_file);
  reader.text("rest_version", config.rest_version);
  reader.map("rest_job", config.rest_job);
  if (config.rest_url.empty()) {
    for (const char* key : {"rest_user", "rest_token_file", "rest_version", "rest_job"})
      reader.refuse(key, "has no effect without rest_url");
    return;
  }
  if (!config.rest_url.starts_with("http://") && !config.rest_url.starts_with("https://"))
    reader.add("rest_url", "must begin with http:// or https://");
  while (config.rest_url.ends_with('/')) config.rest_url.pop_back();
  if (std::find(std::begin(kRestVersions), std::end(kRestVersions), config.rest_version) ==
      std::end(kRestVersions))
    reader.add("rest_version", "must be v0.0.38, v0.0.40, v0.0.41 or v0.0.42");
  reader.require("rest_user", "the user of the token");
  reader.require("rest_token_file", "a file with a token of scontrol token");
  reader.refuse("sbatch_options", "is for the commands of Slurm; use rest_job with rest_url");
}

std::optional<ProviderConfig> read_provider(const YamlNode& node, const std::string& path,
                                            std::vector<Problem>& problems) {
  ProviderReader reader(node, path, problems);
  if (!node.is_map()) {
    problems.push_back({.code = "E-CFG-VALUE", .path = path, .message = "must be a map with type"});
    return std::nullopt;
  }
  std::string type = "agents";
  reader.text("type", type);
  const std::vector<std::string> types{"agents", "slurm", "kubernetes"};
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    reader.add("type", "must be agents, slurm or kubernetes" + did_you_mean(type, types));
    return std::nullopt;
  }
  reader.refuse_others(type, type == "slurm"        ? provider_keys()
                             : type == "kubernetes" ? kubernetes_keys()
                                                    : std::vector<std::string>{"type"});
  if (type == "agents") return std::nullopt;
  ProviderConfig config{.type = type};
  std::string pilot = "shared";
  reader.text("pilot", pilot);
  config.per_allocation = pilot == "per_allocation";
  if (!config.per_allocation && pilot != "shared") {
    reader.add("pilot",
               "must be shared (a job runs one trial after the other) or per_allocation (a job for "
               "each trial)" +
                   did_you_mean(pilot, {"shared", "per_allocation"}));
  }
  reader.integer("max_pilots", config.max_pilots, 1000);
  reader.integer("slots_per_node", config.slots_per_node, 1024);
  reader.integer("max_nodes", config.max_nodes, 1000);
  reader.duration("idle_timeout", config.idle_timeout);
  reader.duration("walltime", config.walltime);
  reader.duration("min_time_left", config.min_time_left, Duration(0));
  if (config.walltime > Duration(0) && config.min_time_left >= config.walltime)
    reader.add("min_time_left", "must be less than walltime (" + format_duration(config.walltime) +
                                    "), or no trial ever starts; set a longer walltime or less time");
  reader.text("agent", config.agent);
  reader.require("slots_per_node", "the slots that det-agent finds on a node of these jobs");
  if (type == "kubernetes") {
    read_kubernetes(reader, config);
    return config;
  }
  reader.text("agent_config", config.agent_config);
  reader.text("partition", config.partition);
  reader.text("qos", config.qos);
  reader.text("account", config.account);
  reader.text("constraint", config.constraint);
  reader.text("gres", config.gres);
  reader.long_options("sbatch_options", config.sbatch_options, own_options());
  read_rest(reader, config);
  reader.require("agent_config", "the configuration file of det-agent on the nodes");
  return config;
}

/// Names of Kubernetes have small letters, digits and hyphens.
bool is_label(const std::string& name) {
  return !name.starts_with('-') && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'a' && c <= 'z');
  });
}

/// Pool names become parts of job and agent names.
bool is_plain(const std::string& name) {
  return name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::map<std::string, ProviderConfig> read_providers(const Options& options, std::vector<Problem>& problems) {
  std::map<std::string, ProviderConfig> providers;
  const YamlNode* tree = options.tree("resource_pools");
  if (tree == nullptr) return providers;
  for (std::size_t i = 0; i < tree->items.size(); ++i) {
    const YamlNode* const node = tree->items[i].find("provider");
    const YamlNode* const name = tree->items[i].find("pool_name");
    // A missing name is reported with the other keys of the pool.
    if (node == nullptr || name == nullptr) continue;
    const std::string path = "resource_pools[" + std::to_string(i) + "]";
    const auto provider = read_provider(*node, path + ".provider", problems);
    if (!provider) continue;
    if (!is_plain(name->text)) {
      problems.push_back({.code = "E-CFG-VALUE",
                          .path = path + ".pool_name",
                          .message = "of a pool with a provider must have at most 40 letters, digits, "
                                     "hyphens, underscores or dots"});
    }
    if (provider->type == "kubernetes" && !is_label(name->text)) {
      problems.push_back({.code = "E-CFG-VALUE",
                          .path = path + ".pool_name",
                          .message = "of a pool on Kubernetes must have small letters, digits and hyphens"});
    }
    providers.emplace(name->text, *provider);
  }
  return providers;
}

}  // namespace det
