// NVIDIA Management Library (NVML), loaded at run time: GPUs, their readings and their events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace det::agent {

/// State of a GPU. A member is absent if the GPU does not support it.
struct GpuReading {
  bool lost = false;  ///< the driver cannot reach it
  /// Part of the last sampling period in which a kernel ran, 0 to 1.
  std::optional<double> utilization;
  std::optional<double> memory_used, memory_total;  ///< bytes
  std::optional<double> temperature;                ///< °C
  std::optional<double> power;                      ///< W
  std::optional<double> sm_clock, memory_clock;     ///< Hz
  std::uint64_t slowdown = 0;                       ///< why its clocks are reduced: bits of Slowdown
  /// Uncorrectable memory errors since the driver was loaded.
  std::optional<std::uint64_t> ecc_errors;
  bool remap_pending = false;  ///< bad memory rows are replaced at the next reset
  bool remap_failed = false;   ///< no spare rows are left
};

/// Bits of GpuReading::slowdown, as in NVML's nvmlClocksEventReasons.
struct Slowdown {
  static constexpr std::uint64_t kPowerCap = 0x4, kHardware = 0x8, kSoftwareThermal = 0x20,
                                 kHardwareThermal = 0x40, kPowerBrake = 0x80;
};

/// An error that the driver reports for a GPU.
struct GpuEvent {
  std::size_t gpu = 0;  ///< its place in the list of Nvml::watch
  /// NVIDIA's number of the error; absent for an uncorrectable memory error.
  std::optional<std::uint64_t> xid;
};

/// Identity of a GPU.
struct GpuName {
  unsigned index = 0;
  std::string brand, uuid;
};

/// Used by one thread at a time.
class Nvml {
 public:
  /// Returns null without driver or library.
  static std::unique_ptr<Nvml> load();
  ~Nvml();

  /// The GPUs that respond, by index.
  std::vector<GpuName> gpus() const;
  /// Whether watch(), read() and wait() may be called: false for a driver older than 450.
  bool readable() const;
  /// Selects the GPUs of read() and wait(). Returns false if the driver has no events; read() works then.
  bool watch(const std::vector<std::string>& uuids);
  /// One reading per watched GPU, in order.
  std::vector<GpuReading> read() const;
  /// Waits for an event of a watched GPU. Returns nothing after `timeout`, and sooner after an error.
  std::optional<GpuEvent> wait(Duration timeout) const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  GpuReading read(void* device) const;
  std::unique_ptr<Functions> functions_;
  std::vector<std::string> uuids_;  ///< of the watched GPUs
  std::vector<void*> watched_;      ///< null: the GPU does not respond
  void* events_ = nullptr;
};

}  // namespace det::agent
