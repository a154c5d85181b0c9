#include "agent/detect.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/gpu/nvml.h"

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

}  // namespace

std::vector<Device> detect_cuda() {
  std::vector<Device> devices;
  const auto nvml = Nvml::load();
  if (!nvml) return devices;
  for (GpuName& gpu : nvml->gpus())
    devices.push_back({"CUDA", std::move(gpu.brand), std::move(gpu.uuid), static_cast<int>(gpu.index)});
  return devices;
}

Result<std::vector<Device>> visible_devices(const std::vector<Device>& devices, const std::string& list) {
  std::vector<Device> visible;
  if (trim(list).empty()) return visible;
  for (const std::string& part : split(list, ',')) {
    const std::string name(trim(part));
    if (name == "-1" || name == "NoDevFiles") return visible;
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    std::vector<const Device*> found;
    for (const Device& device : devices) {
      const bool named = number ? name == std::to_string(device.index) : device.uuid.starts_with(name);
      if (named && !name.empty()) found.push_back(&device);
    }
    if (found.size() != 1) {
      return fail(Code::kFailedPrecondition, "CUDA_VISIBLE_DEVICES: no CUDA device is named \"" + name +
                                                 "\"; use the indexes or UUIDs of nvidia-smi -L");
    }
    if (std::find(visible.begin(), visible.end(), *found[0]) != visible.end())
      return fail(Code::kFailedPrecondition, "CUDA_VISIBLE_DEVICES: names a device twice: " + name);
    visible.push_back(*found[0]);
  }
  return visible;
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
