// Masking of secrets (common/expconf/secrets.h) before configurations leave the master.
#pragma once

#include <string>

#include "common/base/json.h"

namespace det::api {

/// Masks the master's settings, including task_container_defaults.
void mask_master_config(Json& config);
/// Masks an experiment or command configuration. Returns whether anything was masked.
bool mask_secrets(Json& config);
/// Masks a configuration written by a user. Text without secrets is returned unchanged, with comments;
/// otherwise it is rewritten. Text that is not valid YAML is returned as it is.
std::string masked_yaml(const std::string& text);
/// Masks the invariant_config of config policies, as masked_yaml() does.
std::string masked_policies(const std::string& text);
/// Masks a configuration in JSON text.
std::string masked_json(const std::string& text);

}  // namespace det::api
