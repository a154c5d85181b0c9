#include "test_paths.h"

namespace det {

std::string source_path(std::string_view path) { return DET_SOURCE_DIR + std::string(path); }
std::string build_path(std::string_view path) { return DET_BUILD_DIR + std::string(path); }

}  // namespace det
