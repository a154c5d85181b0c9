// Rules that decide which errors and states of a GPU take its slot out of service. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/gpu/nvml.h"

namespace det::agent {

/// Reason of a fault.
inline constexpr const char* kMemoryError = "uncorrectable memory error of the GPU";

/// Returns the reason if an Xid is an error of the GPU, the driver or the machine. Returns nothing for those
/// that a program causes, such as an access to an invalid address (31).
std::optional<std::string> fault_of_xid(std::uint64_t xid);

/// Compares the readings of one GPU.
class GpuRules {
 public:
  /// A GPU that the hardware slows down in this many readings in a row is out of service.
  static constexpr int kMaxSlowReadings = 3;

  struct Finding {
    std::string fault;      ///< new since the last reading; "": none
    std::string condition;  ///< present now; "": none
  };
  Finding judge(const GpuReading& reading);

 private:
  std::optional<std::uint64_t> ecc_errors_;  ///< of the last reading
  int slow_readings_ = 0;
};

/// Names the reasons of a slowdown: "power cap, hardware thermal"; "" without one.
std::string slowdown_text(std::uint64_t slowdown);

}  // namespace det::agent
