// NVIDIA Management Library (NVML), loaded at run time: GPUs, their readings and their events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace det {

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
  /// Its places in the list of Nvml::select: several if it was selected as its MIG devices.
  std::vector<std::size_t> gpus;
  /// NVIDIA's number of the error; absent for an uncorrectable memory error.
  std::optional<std::uint64_t> xid;
};

/// Identity of a GPU, or of a MIG device: a part of a GPU with memory and processors of its own.
struct GpuName {
  unsigned index = 0;  ///< of the GPU
  std::string brand, uuid;
  std::string mig_gpu = {};  ///< of a MIG device: the UUID of its GPU
};

/// NVLink connections of a GPU.
struct NvLinks {
  std::string address;             ///< of the GPU on the PCI bus
  std::vector<std::string> peers;  ///< addresses of the devices at the other ends of its active links
  bool nvswitch = false;           ///< an active link leads to an NVSwitch
};

/// Returns the UUIDs of the GPUs that CUDA offers a process under CUDA_VISIBLE_DEVICES=`visible` (indices or
/// UUIDs, which may be abbreviated), in its order; of all GPUs if it is null. "" for one that does not
/// respond. In MIG mode an index names the first MIG device of its GPU, the only one that CUDA offers.
std::vector<std::string> visible_gpus(const std::vector<GpuName>& gpus, const char* visible);

/// Used by one thread at a time. A function that the driver lacks counts as unsupported.
class Nvml {
 public:
  /// Returns null without driver or library.
  static std::unique_ptr<Nvml> load(const char* library = "libnvidia-ml.so.1");
  ~Nvml();

  /// The GPUs that respond, by index. A GPU in MIG mode is replaced by its MIG devices.
  std::vector<GpuName> gpus() const;
  /// Returns the NVLink connections of each of `gpus`. MIG devices have none.
  std::vector<NvLinks> nvlinks(const std::vector<GpuName>& gpus) const;
  /// Selects the GPUs of read(). One may be selected several times.
  void select(const std::vector<std::string>& uuids);
  /// One reading per selected GPU, in order.
  std::vector<GpuReading> read() const;
  /// Starts to collect the events of the selected GPUs. Returns false if the driver has no events.
  bool watch();
  /// Waits for an event. Returns nothing after `timeout`, and sooner after an error.
  std::optional<GpuEvent> wait(Duration timeout) const;

 private:
  struct Functions;
  /// A GPU or a MIG device.
  struct Found {
    GpuName name;
    void* device = nullptr;     ///< handle; null: it does not respond
    void* gpu = nullptr;        ///< handle of its GPU
    unsigned gpu_instance = 0;  ///< of a MIG device
    bool is_mig() const { return !name.mig_gpu.empty(); }
  };
  explicit Nvml(std::unique_ptr<Functions> functions);
  std::vector<Found> find() const;
  void find_mig_devices(const Found& gpu, std::vector<Found>& found) const;
  GpuReading read(const Found& selected) const;
  std::unique_ptr<Functions> functions_;
  std::vector<Found> selected_;
  void* events_ = nullptr;
};

}  // namespace det
