#include "master/config/pools.h"

#include <algorithm>

#include "common/base/text.h"

namespace det {
namespace {

using Problems = std::vector<Problem>;

void add(Problems& problems, const std::string& path, const std::string& message) {
  problems.push_back({.code = "E-CFG-VALUE", .path = path, .message = message});
}

/// Reports keys that are not in `known`.
void refuse_other_keys(const YamlNode& node, const std::string& path, const std::vector<std::string>& known,
                       Problems& problems) {
  for (const YamlEntry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    add(problems, path + "." + entry.key,
        "is no key of it; there are " + join(known, ", ") + did_you_mean(entry.key, known));
  }
}

/// Reads {type, preemption}; unset keys keep the values of `config`.
SchedulerConfig read_one(const YamlNode& node, const std::string& path, SchedulerConfig config,
                         Problems& problems) {
  const std::vector<std::string> types{"priority", "fair_share", "round_robin"};
  if (!node.is_map()) {
    add(problems, path, "must be a map of type and preemption");
    return config;
  }
  refuse_other_keys(node, path, {"type", "preemption"}, problems);
  if (const YamlNode* type = node.find("type")) {
    config.type = type->text;
    if (std::find(types.begin(), types.end(), config.type) == types.end()) {
      add(problems, path + ".type", "must be one of " + join(types, ", ") + did_you_mean(config.type, types));
    }
  }
  if (const YamlNode* preemption = node.find("preemption")) {
    config.preemption = preemption->boolean;
    if (preemption->kind != YamlNode::Kind::kBool)
      add(problems, path + ".preemption", "must be true or false");
  }
  return config;
}

}  // namespace

SchedulerConfig read_scheduler(const Options& options, Problems& problems) {
  const YamlNode* tree = options.tree("scheduler");
  return tree == nullptr ? SchedulerConfig{} : read_one(*tree, "scheduler", {}, problems);
}

std::map<std::string, SchedulerConfig> read_pools(const Options& options, const SchedulerConfig& rest,
                                                  Problems& problems) {
  std::map<std::string, SchedulerConfig> pools;
  const YamlNode* tree = options.tree("resource_pools");
  if (tree == nullptr) return pools;
  if (!tree->is_list())
    add(problems, "resource_pools",
        "must be a list of maps with pool_name, scheduler, provider and task_container_defaults");
  for (std::size_t i = 0; i < tree->items.size(); ++i) {
    const YamlNode& item = tree->items[i];
    const std::string path = "resource_pools[" + std::to_string(i) + "]";
    refuse_other_keys(item, path, {"pool_name", "scheduler", "provider", "task_container_defaults"},
                      problems);
    const YamlNode* name = item.find("pool_name");
    if (name == nullptr || name->kind != YamlNode::Kind::kString || name->text.empty()) {
      add(problems, path + ".pool_name", "is required: the name that agents and experiments give");
      continue;
    }
    const YamlNode* scheduler = item.find("scheduler");
    const SchedulerConfig its =
        scheduler == nullptr ? rest : read_one(*scheduler, path + ".scheduler", rest, problems);
    // A pool that is listed twice would silently get one of the two settings.
    if (!pools.emplace(name->text, its).second)
      add(problems, path + ".pool_name", name->text + " is there twice");
  }
  return pools;
}

std::map<std::string, expconf::TaskDefaults> read_pool_task_defaults(const Options& options,
                                                                     Problems& warnings, Problems& problems) {
  std::map<std::string, expconf::TaskDefaults> pools;
  const YamlNode* tree = options.tree("resource_pools");
  for (std::size_t i = 0; tree != nullptr && i < tree->items.size(); ++i) {
    const YamlNode* name = tree->items[i].find("pool_name");
    const YamlNode* defaults = tree->items[i].find("task_container_defaults");
    if (name == nullptr || defaults == nullptr || defaults->is_null()) continue;
    const auto append = [&](std::vector<Problem> from, Problems& to) {
      for (Problem& problem : from) {
        problem.path = "resource_pools[" + std::to_string(i) + "]." + problem.path;
        to.push_back(std::move(problem));
      }
    };
    auto read = expconf::read_task_defaults(*defaults);
    if (!read) {
      append(read.error().problems, problems);
      continue;
    }
    append(read->warnings, warnings);
    pools.emplace(name->text, std::move(*read));
  }
  return pools;
}

}  // namespace det
