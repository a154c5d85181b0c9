// Libraries of the GPU driver, for tasks with the files of an image.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace det::agent {

/// Directory of these libraries in a sandbox with the root of an image.
inline constexpr std::string_view kDriverPlace = "/run/nvidia";

struct DriverFile {
  std::string name;  ///< by which programs load it: "libcuda.so.1"
  std::string path;  ///< file on the machine, no link
};

/// Returns the directories that may hold the driver: that of the NVML that this process has loaded, then
/// those of distributions, of WSL and of container runtimes.
std::vector<std::string> driver_directories();
/// Returns the driver's libraries in the first of `directories` with libcuda.so.1, sorted by name; nothing if
/// none has it. They match the kernel module of the machine, so an image cannot contain them. Reads
/// directories.
std::vector<DriverFile> driver_files(const std::vector<std::string>& directories);

}  // namespace det::agent
