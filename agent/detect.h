// Detection of the slots of this machine.
#pragma once

#include <string>
#include <vector>

#include "agent/config.h"
#include "common/base/result.h"
#include "common/gpu/nvml.h"

namespace det::agent {

/// A device behind a slot. The slot's id is its position in the list. Slots that share a GPU have equal
/// UUIDs.
struct Device {
  std::string type;  ///< "CUDA", "CPU" or "ARTIFICIAL"
  /// Product name, for display.
  std::string brand;
  /// Unique on this machine; for CUDA the UUID of the driver.
  std::string uuid;
  int index = -1;            ///< of a CUDA device: its number in NVML
  int link = 0;              ///< link group: devices of one group are connected by NVLink
  std::string mig_gpu = {};  ///< of a MIG device: the UUID of its GPU
  bool operator==(const Device&) const = default;
};

/// Returns the link group of each GPU. All GPUs of a group are connected to each other by NVLink. The largest
/// groups are formed first, of GPUs with the lowest indexes; a GPU without NVLink is a group of its own. All
/// are in group 0 if no two GPUs are connected.
std::vector<int> link_groups(const std::vector<NvLinks>& gpus);
/// Returns the CUDA devices, in NVML's order: GPUs, and in place of a GPU in MIG mode its MIG devices, which
/// are in a link group of their own. Loads NVML at run time; returns none without driver or library.
std::vector<Device> detect_cuda();
/// Returns the devices that CUDA_VISIBLE_DEVICES (`list`) names: NVML indexes, UUIDs, or prefixes of one
/// UUID. The name of a GPU in MIG mode stands for all of its MIG devices. Empty, -1 and NoDevFiles name none.
/// An engine such as Slurm gives a job its devices this way. Errors: kFailedPrecondition (a name without a
/// device, or a device named twice).
Result<std::vector<Device>> visible_devices(const std::vector<Device>& devices, const std::string& list);
/// Returns the slots of GPUs that are `slots_per_device` slots each: one slot of every GPU, then the next
/// one. The slots of a link group are of different GPUs. Errors: kFailedPrecondition (no GPU, or a MIG
/// device).
Result<std::vector<Device>> divided(const std::vector<Device>& devices, int slots_per_device);
/// Returns why one task cannot use the devices of its slots together, as the end of a sentence; "" if it can.
/// `gang`: it has slots of other agents, too.
std::string conflict_of(const std::vector<Device>& devices, bool gang);
/// Returns the devices to offer. Of the CUDA devices, those that CUDA_VISIBLE_DEVICES of the agent names, in
/// its order. Errors: kFailedPrecondition (slot_type is cuda and there is no device; those of
/// visible_devices and divided).
Result<std::vector<Device>> detect_devices(const Settings& settings);

}  // namespace det::agent
