#include "master/api/submit/secrets.h"

#include <nlohmann/json.hpp>

#include "common/base/secret.h"
#include "common/expconf/secrets.h"
#include "common/yaml/yaml.h"

namespace det::api {
namespace {

bool mask(Json& value) {
  value = kSecretMask;
  return true;
}

}  // namespace

bool mask_secrets(Json& config) { return expconf::change_secrets(config, mask); }

void mask_master_config(Json& config) {
  mask_secrets(config);
  if (config.is_object() && config.contains("storages") && config["storages"].is_array())
    for (Json& storage : config["storages"])
      expconf::change_secret_fields(storage, {"access_key", "secret_key"}, mask);
  // Has the fields of an experiment's environment section.
  if (config.contains("task_container_defaults")) mask_secrets(config["task_container_defaults"]);
  if (config.contains("resource_pools") && config["resource_pools"].is_array())
    for (Json& pool : config["resource_pools"])
      if (pool.is_object() && pool.contains("task_container_defaults"))
        mask_secrets(pool["task_container_defaults"]);
}

std::string masked_json(const std::string& text) {
  auto json = parse_json(text, {.bytes = 16 << 20, .depth = 64});
  if (!json || !mask_secrets(*json)) return text;
  return dump_json(*json);
}

std::string masked_yaml(const std::string& text) {
  const auto tree = parse_yaml(text, "");
  if (!tree) return text;
  Json json = to_json(*tree);
  return mask_secrets(json) ? to_yaml(json) : text;
}

std::string masked_policies(const std::string& text) {
  const auto tree = parse_yaml(text, "");
  if (!tree) return text;
  Json json = to_json(*tree);
  const bool fixed = json.is_object() && json.contains("invariant_config");
  return fixed && mask_secrets(json["invariant_config"]) ? to_yaml(json) : text;
}

}  // namespace det::api
