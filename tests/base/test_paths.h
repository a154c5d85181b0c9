#pragma once
// Paths of the source tree and of the build, for tests that read their data or run the programs.
#include <string>
#include <string_view>

namespace det {

/// `path` in the source tree: source_path("/tests/x") or source_path().
std::string source_path(std::string_view path = {});
/// `path` in the build folder: build_path("/bin/det").
std::string build_path(std::string_view path = {});

}  // namespace det
