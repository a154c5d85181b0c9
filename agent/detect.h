// Owns finding out what slots this machine offers.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "base/result.h"

namespace det::agent {

/// A slot; its position in the list is its id.
struct Device {
  std::string type;  ///< "CUDA", "CPU", "ARTIFICIAL"
  std::string brand;
  std::string uuid;
  bool operator==(const Device&) const = default;
};

/// The CUDA devices, through NVML loaded at run time; empty without driver or library.
std::vector<Device> detect_cuda();
/// kFailedPrecondition when slot_type is cuda and there is no device.
Result<std::vector<Device>> detect_devices(const Settings& settings);

}  // namespace det::agent
