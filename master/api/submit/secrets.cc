#include "master/api/submit/secrets.h"

#include <array>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/yaml/yaml.h"

namespace det::api {
namespace {

/// Empty values stay, because they show that nothing is set.
bool mask(Json& value) {
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) return false;
  value = kMask;
  return true;
}

bool mask_fields(Json& map, std::initializer_list<const char*> names) {
  bool masked = false;
  if (!map.is_object()) return false;
  for (const char* name : names)
    if (map.contains(name)) masked = mask(map[name]) || masked;
  return masked;
}

/// Whether an environment variable is a secret, judged by its name.
bool says_secret(std::string_view name) {
  static constexpr std::array kWords = {"SECRET", "PASSWORD", "PASSWD",     "PASSPHRASE",  "TOKEN",
                                        "APIKEY", "API_KEY",  "CREDENTIAL", "PRIVATE_KEY", "ACCESS_KEY"};
  const std::string upper = to_upper(name);
  for (const char* word : kWords)
    if (upper.find(word) != std::string::npos) return true;
  return false;
}

/// Accepts all forms of the field: a list of NAME=VALUE, a map, or a map of these by kind of device.
bool mask_variables(Json& variables) {
  bool masked = false;
  if (variables.is_array()) {
    for (Json& one : variables) {
      if (!one.is_string()) continue;
      const std::string text = one.get<std::string>();
      const std::size_t equals = text.find('=');
      // Entries without a value have nothing to mask.
      if (equals == std::string::npos || equals + 1 == text.size() || !says_secret(text.substr(0, equals)))
        continue;
      one = text.substr(0, equals + 1) + kMask;
      masked = true;
    }
  } else if (variables.is_object()) {
    for (auto& [name, value] : variables.items()) {
      if (value.is_structured())
        masked = mask_variables(value) || masked;
      else if (says_secret(name))
        masked = mask(value) || masked;
    }
  }
  return masked;
}

/// Masks all values of a nested structure; the keys stay.
bool mask_leaves(Json& value) {
  if (!value.is_structured()) return mask(value);
  bool masked = false;
  for (Json& inner : value) masked = mask_leaves(inner) || masked;
  return masked;
}

}  // namespace

bool mask_secrets(Json& config) {
  if (!config.is_object()) return false;
  bool masked = false;
  // data.secrets may be nested to any depth.
  if (config.contains("data") && config["data"].is_object() && config["data"].contains("secrets"))
    masked = mask_leaves(config["data"]["secrets"]) || masked;
  if (config.contains("checkpoint_storage"))
    masked = mask_fields(config["checkpoint_storage"],
                         {"access_key", "secret_key", "connection_string", "credential"}) ||
             masked;
  if (!config.contains("environment") || !config["environment"].is_object()) return masked;
  Json& environment = config["environment"];
  if (environment.contains("registry_auth"))
    masked = mask_fields(environment["registry_auth"], {"password", "auth", "identitytoken", "identity_token",
                                                        "registrytoken", "registry_token"}) ||
             masked;
  if (environment.contains("environment_variables"))
    masked = mask_variables(environment["environment_variables"]) || masked;
  return masked;
}

void mask_master_config(Json& config) {
  mask_secrets(config);
  if (config.is_object() && config.contains("storages") && config["storages"].is_array())
    for (Json& storage : config["storages"]) mask_fields(storage, {"access_key", "secret_key"});
  // Has the fields of an experiment's environment section.
  if (config.contains("task_container_defaults")) mask_secrets(config["task_container_defaults"]);
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
