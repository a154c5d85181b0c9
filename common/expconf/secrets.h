// The places of a configuration that hold secrets: data.secrets, passwords in environment.registry_auth, keys
// in checkpoint_storage, and environment variables with names such as *_TOKEN or *PASSWORD*. A place is known
// by names alone, never by its value. Pure.
#pragma once

#include <functional>

#include "common/base/json.h"

namespace det::expconf {

/// Replaces the value of a secret and returns true, or leaves it and returns false.
using SecretChange = std::function<bool(Json& value)>;

/// Calls `change` for each secret of an experiment or command configuration that is neither null nor "".
/// Values of a list of NAME=VALUE are passed without the name and must stay strings. Returns whether any call
/// returned true.
bool change_secrets(Json& config, const SecretChange& change);

/// The same for the fields `names` of an object.
bool change_secret_fields(Json& map, std::initializer_list<const char*> names, const SecretChange& change);

}  // namespace det::expconf
