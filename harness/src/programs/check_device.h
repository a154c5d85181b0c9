// Check of a device before work is placed on it: a matrix product and copies, compared with exact results.
#pragma once

#include <string>

namespace det {

/// Checks the first device of a type, "cuda" or "cpu". Prints one line: what is good, or on stderr what is
/// wrong. Returns the exit code: 0, 1 (the device is missing or wrong) or 2 (unknown type).
int check_device(const std::string& type);

}  // namespace det
