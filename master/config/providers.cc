// Key `provider` of resource pools.
#include <algorithm>
#include <cctype>

#include "common/base/text.h"
#include "common/base/units.h"
#include "master/config/pools.h"

namespace det {
namespace {

/// Keys of a provider of type slurm.
const std::vector<std::string>& provider_keys() {
  static const std::vector<std::string> keys{"type",         "max_pilots",    "slots_per_node", "max_nodes",
                                             "idle_timeout", "agent",         "agent_config",   "walltime",
                                             "partition",    "qos",           "account",        "constraint",
                                             "gres",         "sbatch_options"};
  return keys;
}

/// Options of sbatch that the master sets itself, without the leading hyphens.
const std::vector<std::string>& own_options() {
  static const std::vector<std::string> options{
      "parsable",   "job-name", "nodes", "ntasks", "ntasks-per-node", "requeue",  "array",
      "no-requeue", "wait",     "wrap",  "time",   "export",          "test-only"};
  return options;
}

/// Reads one provider. A failed check appends a problem and leaves the default.
class ProviderReader {
 public:
  ProviderReader(const YamlNode& node, std::string path, std::vector<Problem>& problems)
      : node_(node), path_(std::move(path)), problems_(problems) {}

  void integer(const char* key, int& value, int largest) {
    const YamlNode* const given = node_.find(key);
    if (!given) return;
    if (given->kind != YamlNode::Kind::kInt || given->integer < 1 || given->integer > largest)
      return add(key, "must be an integer from 1 to " + std::to_string(largest));
    value = static_cast<int>(given->integer);
  }
  void duration(const char* key, Duration& value) {
    const YamlNode* const given = node_.find(key);
    if (!given) return;
    const auto parsed = parse_duration(given->text);
    if (!parsed || *parsed < std::chrono::seconds(1))
      return add(key, "must be a duration of at least 1s, like 30m or 4h");
    value = *parsed;
  }
  void text(const char* key, std::string& value) {
    const YamlNode* const given = node_.find(key);
    if (!given) return;
    const bool scalar = !given->is_list() && !given->is_map() && !given->is_null();
    if (!scalar || given->text.empty() || has_control(given->text))
      return add(key, "must be a text of one line");
    value = given->text;
  }
  void sbatch_options(std::vector<std::string>& values) {
    const YamlNode* const given = node_.find("sbatch_options");
    if (!given) return;
    if (!given->is_list()) return add("sbatch_options", "must be a list of options like --exclusive");
    for (const YamlNode& item : given->items) {
      const std::string& text = item.text;
      const bool is_long = text.starts_with("--") && text.size() > 2;
      const std::string name = is_long ? text.substr(2, text.find('=') - 2) : "";
      if (item.kind != YamlNode::Kind::kString || name.empty() || has_control(text)) {
        add("sbatch_options", "must be a list of long options like --exclusive or --mem=4G");
      } else if (std::find(own_options().begin(), own_options().end(), name) != own_options().end()) {
        add("sbatch_options", "must not contain --" + name + ": the master sets it");
      } else {
        values.push_back(text);
      }
    }
  }
  void require(const char* key, const std::string& meaning) {
    if (!node_.find(key)) add(key, "is required: " + meaning);
  }
  void add(const std::string& key, const std::string& message) {
    problems_.push_back({.code = "E-CFG-VALUE", .path = path_ + "." + key, .message = message});
  }

 private:
  static bool has_control(const std::string& text) {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; });
  }

  const YamlNode& node_;
  const std::string path_;
  std::vector<Problem>& problems_;
};

std::optional<ProviderConfig> read_provider(const YamlNode& node, const std::string& path,
                                            std::vector<Problem>& problems) {
  ProviderReader reader(node, path, problems);
  if (!node.is_map()) {
    problems.push_back({.code = "E-CFG-VALUE", .path = path, .message = "must be a map with type"});
    return std::nullopt;
  }
  std::string type = "agents";
  reader.text("type", type);
  if (type != "agents" && type != "slurm") {
    reader.add("type", "must be agents or slurm" + did_you_mean(type, {"agents", "slurm"}));
    return std::nullopt;
  }
  const std::vector<std::string> known = type == "slurm" ? provider_keys() : std::vector<std::string>{"type"};
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    reader.add(entry.key, "is no key of provider type " + type + "; there are " + join(known, ", ") +
                              did_you_mean(entry.key, known));
  }
  if (type == "agents") return std::nullopt;
  ProviderConfig config;
  reader.integer("max_pilots", config.max_pilots, 1000);
  reader.integer("slots_per_node", config.slots_per_node, 1024);
  reader.integer("max_nodes", config.max_nodes, 1000);
  reader.duration("idle_timeout", config.idle_timeout);
  reader.duration("walltime", config.walltime);
  reader.text("agent", config.agent);
  reader.text("agent_config", config.agent_config);
  reader.text("partition", config.partition);
  reader.text("qos", config.qos);
  reader.text("account", config.account);
  reader.text("constraint", config.constraint);
  reader.text("gres", config.gres);
  reader.sbatch_options(config.sbatch_options);
  reader.require("slots_per_node", "the slots that det-agent finds on a node of these jobs");
  reader.require("agent_config", "the configuration file of det-agent on the nodes");
  return config;
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
    providers.emplace(name->text, *provider);
  }
  return providers;
}

}  // namespace det
