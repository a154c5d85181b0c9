#include "agent/gpu/faults.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "common/base/text.h"

namespace det::agent {
namespace {

// Meanings: docs.nvidia.com/deploy/xid-errors. After a contained memory error (94) and a recorded row
// remapping (63) the GPU is usable; a pending reset is a condition of the readings.
constexpr std::array<std::uint64_t, 9> kApplicationXids{13, 31, 43, 45, 63, 68, 69, 94, 109};

const std::map<std::uint64_t, const char*>& xid_names() {
  static const std::map<std::uint64_t, const char*> names{{48, "double-bit memory error"},
                                                          {62, "internal microcontroller halt"},
                                                          {64, "row remapping failed"},
                                                          {74, "NVLink error"},
                                                          {79, "fallen off the bus"},
                                                          {92, "high rate of single-bit memory errors"},
                                                          {95, "uncontained memory error"},
                                                          {119, "timeout of the GPU's system processor"},
                                                          {120, "error of the GPU's system processor"}};
  return names;
}

}  // namespace

std::optional<std::string> fault_of_xid(std::uint64_t xid) {
  if (std::find(kApplicationXids.begin(), kApplicationXids.end(), xid) != kApplicationXids.end())
    return std::nullopt;
  const auto name = xid_names().find(xid);
  return "GPU error Xid " + std::to_string(xid) +
         (name == xid_names().end() ? "" : std::string(" (") + name->second + ")") + "; see dmesg";
}

GpuRules::Finding GpuRules::judge(const GpuReading& reading) {
  Finding finding;
  if (reading.ecc_errors) {
    // The first reading counts errors of the time before this agent.
    if (ecc_errors_ && *reading.ecc_errors > *ecc_errors_) finding.fault = kMemoryError;
    ecc_errors_ = reading.ecc_errors;
  }
  constexpr std::uint64_t kByHardware =
      Slowdown::kHardware | Slowdown::kHardwareThermal | Slowdown::kPowerBrake;
  const std::uint64_t slow = reading.slowdown & kByHardware;
  slow_readings_ = slow != 0 ? slow_readings_ + 1 : 0;
  if (reading.lost) {
    finding.condition = "the driver cannot reach the GPU; reset it or restart the machine";
  } else if (reading.remap_failed) {
    finding.condition = "the GPU has no spare memory rows left; replace it";
  } else if (reading.remap_pending) {
    finding.condition = "the GPU needs a reset to replace bad memory rows (nvidia-smi --gpu-reset)";
  } else if (slow_readings_ >= kMaxSlowReadings) {
    finding.condition =
        "the hardware slows the GPU down (" + slowdown_text(slow) + "); check cooling and power";
  }
  return finding;
}

std::string slowdown_text(std::uint64_t slowdown) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : {std::pair{Slowdown::kPowerCap, "power cap"},
                                  {Slowdown::kHardware, "hardware"},
                                  {Slowdown::kSoftwareThermal, "thermal"},
                                  {Slowdown::kHardwareThermal, "hardware thermal"},
                                  {Slowdown::kPowerBrake, "power brake"}}) {
    if ((slowdown & bit) != 0) names.emplace_back(name);
  }
  return join(names, ", ");
}

}  // namespace det::agent
