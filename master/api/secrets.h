// Owns what is shown of a configuration's secrets: nothing. Which fields those are: data.secrets, the
// passwords of environment.registry_auth, the keys of checkpoint_storage, and environment variables whose
// names say so.
#pragma once

#include <string>

#include "base/json.h"

namespace det::api {

inline constexpr const char* kMask = "****";

/// Of the master's settings: what is in its defaults of experiments.
void mask_master_config(Json& config);
/// True when something was masked.
bool mask_secrets(Json& config);
/// Of a configuration as somebody wrote it: the same text when it holds no secret, otherwise written anew
/// without.
std::string masked_yaml(const std::string& text);
/// Of config policies: what is in their invariant_config.
std::string masked_policies(const std::string& text);
/// Of a configuration as JSON text.
std::string masked_json(const std::string& text);

}  // namespace det::api
