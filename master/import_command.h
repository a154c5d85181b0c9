// `det-master migrate from-determined`: imports the database of another platform in place of serving.
#pragma once

#include <string>
#include <vector>

namespace det {

/// First argument that selects the command.
inline constexpr const char* kImportWord = "migrate";

/// Runs the command and returns the exit code of the program: 2 for wrong arguments, 1 for a failed import.
/// Prints progress and a report to standard output. `arguments`: "migrate from-determined SOURCE_URL
/// [--no-logs] [OPTION…]" with the options of det-master.
int run_import(const std::vector<std::string>& arguments);

}  // namespace det
