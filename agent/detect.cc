#include "agent/detect.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <set>

#include "common/base/files.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

std::string cpu_brand() {
  const auto info = read_file("/proc/cpuinfo");
  if (!info) return "CPU";
  for (const std::string& line : split(*info, '\n')) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "CPU";
}

std::vector<Device> numbered(const std::string& type, const std::string& brand, int count) {
  std::vector<Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back({type, brand, to_lower(type) + "-" + std::to_string(i)});
  return devices;
}

using Gpus = std::vector<std::size_t>;

bool connected(const NvLinks& left, const NvLinks& right) {
  const auto leads_to = [](const NvLinks& from, const NvLinks& to) {
    return std::find(from.peers.begin(), from.peers.end(), to.address) != from.peers.end();
  };
  return (left.nvswitch && right.nvswitch) || (leads_to(left, right) && leads_to(right, left));
}

/// Extends `clique`, GPUs that are all connected to each other, by some of `candidates`, GPUs that are
/// connected to all of it, and stores the result in `largest` if it has more GPUs. A machine has few GPUs,
/// and a complete clique is found first, so the search is short.
void extend(const std::vector<NvLinks>& gpus, Gpus& clique, const Gpus& candidates, Gpus& largest) {
  if (clique.size() > largest.size()) largest = clique;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (clique.size() + candidates.size() - i <= largest.size()) return;
    Gpus rest;
    for (std::size_t j = i + 1; j < candidates.size(); ++j)
      if (connected(gpus[candidates[i]], gpus[candidates[j]])) rest.push_back(candidates[j]);
    clique.push_back(candidates[i]);
    extend(gpus, clique, rest, largest);
    clique.pop_back();
  }
}

}  // namespace

std::vector<int> link_groups(const std::vector<NvLinks>& gpus) {
  std::vector<int> groups(gpus.size(), 0);
  Gpus left(gpus.size());
  std::iota(left.begin(), left.end(), 0);
  for (int group = 0; !left.empty(); ++group) {
    Gpus clique, largest;
    extend(gpus, clique, left, largest);
    if (group == 0 && largest.size() == 1) break;
    for (const std::size_t gpu : largest) groups[gpu] = group;
    std::erase_if(left, [&](std::size_t gpu) {
      return std::find(largest.begin(), largest.end(), gpu) != largest.end();
    });
  }
  return groups;
}

std::vector<Device> detect_cuda() {
  std::vector<Device> devices;
  const auto nvml = Nvml::load();
  if (!nvml) return devices;
  std::vector<GpuName> gpus = nvml->gpus();
  std::vector<GpuName> whole;
  std::copy_if(gpus.begin(), gpus.end(), std::back_inserter(whole),
               [](const GpuName& gpu) { return gpu.mig_gpu.empty(); });
  const std::vector<int> groups = link_groups(nvml->nvlinks(whole));
  const int mig_group = groups.empty() ? 0 : *std::max_element(groups.begin(), groups.end()) + 1;
  auto group = groups.begin();
  for (GpuName& gpu : gpus) {
    devices.push_back({.type = "CUDA",
                       .brand = std::move(gpu.brand),
                       .uuid = std::move(gpu.uuid),
                       .index = static_cast<int>(gpu.index),
                       .link = gpu.mig_gpu.empty() ? *group++ : mig_group,
                       .mig_gpu = std::move(gpu.mig_gpu)});
  }
  return devices;
}

Result<std::vector<Device>> visible_devices(const std::vector<Device>& devices, const std::string& list) {
  std::vector<Device> visible;
  if (trim(list).empty()) return visible;
  for (const std::string& part : split(list, ',')) {
    const std::string name(trim(part));
    if (name == "-1" || name == "NoDevFiles") return visible;
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    std::vector<Device> found;
    std::set<std::string> named;
    for (const Device& device : devices) {
      const bool by_gpu = number ? name == std::to_string(device.index) : device.mig_gpu.starts_with(name);
      if (name.empty() || (!by_gpu && (number || !device.uuid.starts_with(name)))) continue;
      found.push_back(device);
      named.insert(by_gpu && !device.mig_gpu.empty() ? device.mig_gpu : device.uuid);
    }
    if (named.size() != 1) {
      return fail(Code::kFailedPrecondition, "CUDA_VISIBLE_DEVICES: no CUDA device is named \"" + name +
                                                 "\"; use the indexes or UUIDs of nvidia-smi -L");
    }
    for (Device& device : found) {
      if (std::find(visible.begin(), visible.end(), device) != visible.end())
        return fail(Code::kFailedPrecondition, "CUDA_VISIBLE_DEVICES: names a device twice: " + name);
      visible.push_back(std::move(device));
    }
  }
  return visible;
}

Result<std::vector<Device>> divided(const std::vector<Device>& devices, int slots_per_device) {
  const std::string setting = "slots_per_device: " + std::to_string(slots_per_device);
  int groups = 0;
  for (const Device& device : devices) {
    groups = std::max(groups, device.link + 1);
    if (device.mig_gpu.empty()) continue;
    return fail(Code::kFailedPrecondition,
                setting + " does not divide MIG devices, and GPU " + device.mig_gpu +
                    " is in MIG mode; set slots_per_device: 1, or turn MIG mode off");
  }
  if (devices.empty())
    return fail(Code::kFailedPrecondition, setting + " needs a CUDA device, but NVML reports none, or " +
                                               "CUDA_VISIBLE_DEVICES hides all; set slots_per_device: 1");
  std::vector<Device> slots;
  for (int share = 0; share < slots_per_device; ++share) {
    for (Device device : devices) {
      device.link += share * groups;
      slots.push_back(std::move(device));
    }
  }
  return slots;
}

std::string conflict_of(const std::vector<Device>& devices, bool gang) {
  const bool mig = std::any_of(devices.begin(), devices.end(),
                               [](const Device& device) { return !device.mig_gpu.empty(); });
  if (mig && (gang || devices.size() > 1)) {
    return "are MIG devices, of which CUDA offers a process only one and which NCCL does not connect; set "
           "resources.slots_per_trial: 1, or choose a resource pool whose agents have whole GPUs";
  }
  std::set<std::string> gpus;
  for (const Device& device : devices) {
    if (device.type == "CUDA" && !gpus.insert(device.uuid).second)
      return "share GPU " + device.uuid +
             ", and NCCL needs one for each process; try again when slots of more GPUs are free, use fewer "
             "slots, "
             "or choose a resource pool whose agents have slots_per_device: 1";
  }
  return "";
}

Result<std::vector<Device>> detect_devices(const Settings& settings) {
  if (settings.artificial_slots > 0) return numbered("ARTIFICIAL", "artificial", settings.artificial_slots);
  if (settings.slot_type == SlotType::kNone) return std::vector<Device>{};
  if (settings.slot_type != SlotType::kCpu) {
    std::vector<Device> cuda = detect_cuda();
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    if (visible != nullptr && !cuda.empty()) {
      TRY_ASSIGN(cuda, visible_devices(cuda, visible));
    }
    // Reached for kAuto and kCuda.
    if (settings.slots_per_device > 1) return divided(cuda, settings.slots_per_device);
    if (!cuda.empty()) return cuda;
    if (settings.slot_type == SlotType::kCuda) {
      return fail(
          Code::kFailedPrecondition,
          "slot_type: cuda needs a CUDA device, but NVML reports none, or CUDA_VISIBLE_DEVICES hides all; "
          "check the driver with nvidia-smi");
    }
  }
  return numbered("CPU", cpu_brand(), settings.cpu_slots);
}

}  // namespace det::agent
