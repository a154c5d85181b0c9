#include "agent/gpu/driver_files.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace det::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCuda = "libcuda.so.1";
constexpr std::array<std::string_view, 4> kPrefixes{"libcuda.so.", "libcudadebugger.so.", "libnvidia-",
                                                    "libnvcuvid.so."};

/// Whether a file is loaded at run time. Names without a version are for linkers.
bool is_driver_library(std::string_view name) {
  return name.find(".so.") != name.npos &&
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> driver_directories() {
  std::vector<std::string> directories;
  const auto take = [](dl_phdr_info* info, std::size_t, void* user) {
    const fs::path file(info->dlpi_name == nullptr ? "" : info->dlpi_name);
    if (file.filename().string().starts_with("libnvidia-ml.so"))
      static_cast<std::vector<std::string>*>(user)->push_back(file.parent_path().string());
    return 0;
  };
  ::dl_iterate_phdr(take, &directories);
  for (const char* known :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"})
    directories.emplace_back(known);
  return directories;
}

std::vector<DriverFile> driver_files(const std::vector<std::string>& directories) {
  std::error_code error;
  const auto found = std::find_if(directories.begin(), directories.end(), [&](const std::string& directory) {
    return fs::exists(fs::path(directory) / kCuda, error);
  });
  std::vector<DriverFile> files;
  if (found == directories.end()) return files;
  for (const auto& entry : fs::directory_iterator(*found, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_driver_library(name)) continue;
    std::error_code broken;
    const fs::path real = fs::canonical(entry.path(), broken);
    if (!broken && fs::is_regular_file(real, broken)) files.push_back({name, real.string()});
  }
  std::sort(files.begin(), files.end(),
            [](const DriverFile& left, const DriverFile& right) { return left.name < right.name; });
  return files;
}

}  // namespace det::agent
