#include "agent/detect.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>

#include "base/files.h"
#include "base/log.h"
#include "base/text.h"

namespace det::agent {
namespace {

// What we use of NVML's stable C interface (docs.nvidia.com/deploy/nvml-api); its header is not needed to
// build.
using NvmlDevice = struct NvmlDeviceTag*;
using NvmlResult = int;  // 0 is success
using NvmlPlain = NvmlResult();
using NvmlCount = NvmlResult(unsigned*);
using NvmlByIndex = NvmlResult(unsigned, NvmlDevice*);
using NvmlText = NvmlResult(NvmlDevice, char*, unsigned);

template <typename Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

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
  const std::unique_ptr<void, int (*)(void*)> library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL),
                                                      [](void* handle) { return ::dlclose(handle); });
  if (!library) return {};
  auto* init = symbol<NvmlPlain>(library.get(), "nvmlInit_v2");
  auto* shutdown = symbol<NvmlPlain>(library.get(), "nvmlShutdown");
  auto* count = symbol<NvmlCount>(library.get(), "nvmlDeviceGetCount_v2");
  auto* by_index = symbol<NvmlByIndex>(library.get(), "nvmlDeviceGetHandleByIndex_v2");
  auto* name = symbol<NvmlText>(library.get(), "nvmlDeviceGetName");
  auto* uuid = symbol<NvmlText>(library.get(), "nvmlDeviceGetUUID");
  if (!init || !shutdown || !count || !by_index || !name || !uuid || init() != 0) return {};
  std::vector<Device> devices;
  unsigned number = 0;
  if (count(&number) != 0) number = 0;
  for (unsigned i = 0; i < number; ++i) {
    NvmlDevice device = nullptr;
    char brand[96] = {}, id[96] = {};
    if (by_index(i, &device) != 0 || uuid(device, id, sizeof id - 1) != 0) {
      log::warn("a CUDA device does not answer and is not offered", {{"index", i}});
      continue;
    }
    if (name(device, brand, sizeof brand - 1) != 0) brand[0] = '\0';
    devices.push_back({"CUDA", brand, id});
  }
  shutdown();
  return devices;
}

Result<std::vector<Device>> detect_devices(const Settings& settings) {
  if (settings.artificial_slots > 0) return numbered("ARTIFICIAL", "artificial", settings.artificial_slots);
  if (settings.slot_type == SlotType::kNone) return std::vector<Device>{};
  if (settings.slot_type != SlotType::kCpu) {
    std::vector<Device> cuda = detect_cuda();
    if (!cuda.empty()) return cuda;
    if (settings.slot_type == SlotType::kCuda) {
      return fail(
          Code::kFailedPrecondition,
          "slot_type: cuda was asked for, but NVML shows no device; check the driver with nvidia-smi");
    }
  }
  return numbered("CPU", cpu_brand(), settings.cpu_slots);
}

}  // namespace det::agent
