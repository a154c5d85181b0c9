#include "common/expconf/secrets.h"

#include <array>
#include <nlohmann/json.hpp>

#include "common/base/text.h"

namespace det::expconf {
namespace {

/// Empty values stay, because they show that nothing is set.
bool change_value(Json& value, const SecretChange& change) {
  if (value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty())) return false;
  return change(value);
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
bool change_variables(Json& variables, const SecretChange& change) {
  bool changed = false;
  if (variables.is_array()) {
    for (Json& one : variables) {
      if (!one.is_string()) continue;
      const std::string text = one.get<std::string>();
      const std::size_t equals = text.find('=');
      // Entries without a value have no secret.
      if (equals == std::string::npos || equals + 1 == text.size() || !says_secret(text.substr(0, equals)))
        continue;
      Json value = text.substr(equals + 1);
      if (!change(value)) continue;
      one = text.substr(0, equals + 1) + value.get<std::string>();
      changed = true;
    }
  } else if (variables.is_object()) {
    for (auto& [name, value] : variables.items()) {
      if (value.is_structured())
        changed = change_variables(value, change) || changed;
      else if (says_secret(name))
        changed = change_value(value, change) || changed;
    }
  }
  return changed;
}

/// Changes all values of a nested structure; the keys stay.
bool change_leaves(Json& value, const SecretChange& change) {
  if (!value.is_structured()) return change_value(value, change);
  bool changed = false;
  for (Json& inner : value) changed = change_leaves(inner, change) || changed;
  return changed;
}

}  // namespace

bool change_secret_fields(Json& map, std::initializer_list<const char*> names, const SecretChange& change) {
  bool changed = false;
  if (!map.is_object()) return false;
  for (const char* name : names)
    if (map.contains(name)) changed = change_value(map[name], change) || changed;
  return changed;
}

bool change_secrets(Json& config, const SecretChange& change) {
  if (!config.is_object()) return false;
  bool changed = false;
  // data.secrets may be nested to any depth.
  if (config.contains("data") && config["data"].is_object() && config["data"].contains("secrets"))
    changed = change_leaves(config["data"]["secrets"], change) || changed;
  if (config.contains("checkpoint_storage"))
    changed = change_secret_fields(config["checkpoint_storage"],
                                   {"access_key", "secret_key", "connection_string", "credential"}, change) ||
              changed;
  if (!config.contains("environment") || !config["environment"].is_object()) return changed;
  Json& environment = config["environment"];
  if (environment.contains("registry_auth"))
    changed = change_secret_fields(
                  environment["registry_auth"],
                  {"password", "auth", "identitytoken", "identity_token", "registrytoken", "registry_token"},
                  change) ||
              changed;
  if (environment.contains("environment_variables"))
    changed = change_variables(environment["environment_variables"], change) || changed;
  return changed;
}

}  // namespace det::expconf
