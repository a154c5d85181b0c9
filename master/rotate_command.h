// `det-master rotate-secret`: replaces the secrets of the cluster in place of serving.
#pragma once

#include <string>
#include <vector>

namespace det {

/// First argument that selects the command.
inline constexpr const char* kRotateWord = "rotate-secret";

/// Runs the command and returns the exit code of the program, as run_offline(). Replaces the secret of the
/// cluster and the key of stored secrets, encrypts everything with the new key, and ends all logins, access
/// tokens and join tokens. A process that dies on the way leaves either the old state or the new one.
/// `arguments`: "rotate-secret [OPTION…]" with the options of det-master.
int run_rotation(const std::vector<std::string>& arguments);

}  // namespace det
