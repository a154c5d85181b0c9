// Detection of the slots of this machine.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "common/base/result.h"

namespace det::agent {

/// A device behind a slot. The slot's id is its position in the list.
struct Device {
  std::string type;  ///< "CUDA", "CPU" or "ARTIFICIAL"
  /// Product name, for display.
  std::string brand;
  /// Unique on this machine; for CUDA the UUID of the driver.
  std::string uuid;
  bool operator==(const Device&) const = default;
};

/// Returns the CUDA devices, in NVML's order. Loads NVML at run time; returns none without driver or library.
std::vector<Device> detect_cuda();
/// Returns the devices to offer. Errors: kFailedPrecondition if slot_type is cuda and there is no device.
Result<std::vector<Device>> detect_devices(const Settings& settings);

}  // namespace det::agent
