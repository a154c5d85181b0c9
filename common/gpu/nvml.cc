#include "common/gpu/nvml.h"

#include <algorithm>
#include <charconv>

#include "common/base/log.h"
#include "common/base/shared_library.h"
#include "common/base/text.h"

namespace det {
namespace {

// The subset of NVML's stable C interface in use (docs.nvidia.com/deploy/nvml-api), declared here so that its
// header is not needed for the build.
using NvmlDevice = void*;
using NvmlResult = int;
constexpr NvmlResult kSuccess = 0, kNotSupported = 3, kGpuIsLost = 15, kResetRequired = 16;
constexpr unsigned kTemperatureGpu = 0, kClockSm = 1, kClockMemory = 2;
constexpr unsigned kUncorrected = 1, kSinceDriverLoad = 0;
constexpr unsigned long long kEventEcc = 0x2, kEventXid = 0x8;
constexpr unsigned kTextSize = 96;
constexpr unsigned kMaxLinks = 18, kLinkActive = 1;
constexpr int kLinkToSwitch = 2;
constexpr unsigned kMigMode = 1, kNoInstance = 0xFFFFFFFF;

/// Calls a function that the driver may lack.
template <typename... Parameters, typename... Arguments>
NvmlResult call(NvmlResult (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? kNotSupported : function(arguments...);
}

}  // namespace

struct Nvml::Functions {
  // Not in the anonymous namespace: GCC 14 fails there with an internal error when it checks linkage.
  struct Utilization {
    unsigned gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  struct Pci {
    char legacy_address[16];
    unsigned domain, bus, device, ids, subsystem;
    char address[32];
  };
  struct EventData {
    NvmlDevice device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
  };

  NvmlResult (*init)();
  NvmlResult (*shutdown)();
  NvmlResult (*count)(unsigned*);
  NvmlResult (*by_index)(unsigned, NvmlDevice*);
  NvmlResult (*name)(NvmlDevice, char*, unsigned);
  NvmlResult (*uuid)(NvmlDevice, char*, unsigned);
  NvmlResult (*utilization)(NvmlDevice, Utilization*);
  NvmlResult (*memory)(NvmlDevice, Memory*);
  NvmlResult (*temperature)(NvmlDevice, unsigned, unsigned*);
  NvmlResult (*power)(NvmlDevice, unsigned*);
  NvmlResult (*clock)(NvmlDevice, unsigned, unsigned*);
  NvmlResult (*slowdown)(NvmlDevice, unsigned long long*);
  NvmlResult (*ecc_errors)(NvmlDevice, unsigned, unsigned, unsigned long long*);
  NvmlResult (*remapped_rows)(NvmlDevice, unsigned*, unsigned*, unsigned*, unsigned*);
  NvmlResult (*mig_mode)(NvmlDevice, unsigned*, unsigned*);
  NvmlResult (*mig_count)(NvmlDevice, unsigned*);
  NvmlResult (*mig_by_index)(NvmlDevice, unsigned, NvmlDevice*);
  NvmlResult (*gpu_instance)(NvmlDevice, unsigned*);
  NvmlResult (*pci)(NvmlDevice, Pci*);
  NvmlResult (*link_state)(NvmlDevice, unsigned, unsigned*);
  NvmlResult (*link_type)(NvmlDevice, unsigned, int*);
  NvmlResult (*link_peer)(NvmlDevice, unsigned, Pci*);
  NvmlResult (*event_types)(NvmlDevice, unsigned long long*);
  NvmlResult (*new_events)(void**);
  NvmlResult (*add_events)(NvmlDevice, unsigned long long, void*);
  NvmlResult (*wait_event)(void*, EventData*, unsigned);
  NvmlResult (*free_events)(void*);
};

std::vector<std::string> visible_gpus(const std::vector<GpuName>& gpus, const char* visible) {
  const unsigned count = gpus.empty() ? 0 : gpus.back().index + 1;
  std::vector<std::string> by_index(count);
  for (const GpuName& gpu : gpus)
    if (by_index[gpu.index].empty()) by_index[gpu.index] = gpu.uuid;
  if (visible == nullptr) return by_index;
  std::vector<std::string> uuids;
  for (const std::string& piece : split(visible, ',')) {
    const std::string name(trim(piece));
    std::size_t index = count;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool number = error == std::errc() && end == name.data() + name.size();
    const auto named = std::find_if(gpus.begin(), gpus.end(), [&](const GpuName& gpu) {
      return !name.empty() && gpu.uuid.starts_with(name);
    });
    // CUDA ignores the rest after an unknown name.
    if (number ? index >= count : named == gpus.end()) break;
    uuids.push_back(number ? by_index[index] : named->uuid);
  }
  return uuids;
}

std::unique_ptr<Nvml> Nvml::load(const char* name) {
  auto library = SharedLibrary::open(name);
  if (!library) return nullptr;
  auto f = std::make_unique<Functions>();
  library->find(f->init, "nvmlInit_v2")
      .find(f->shutdown, "nvmlShutdown")
      .find(f->count, "nvmlDeviceGetCount_v2")
      .find(f->by_index, "nvmlDeviceGetHandleByIndex_v2")
      .find(f->uuid, "nvmlDeviceGetUUID");
  if (!library->complete() || f->init() != kSuccess) return nullptr;
  library->find(f->name, "nvmlDeviceGetName")
      .find(f->utilization, "nvmlDeviceGetUtilizationRates")
      .find(f->memory, "nvmlDeviceGetMemoryInfo")
      .find(f->temperature, "nvmlDeviceGetTemperature")
      .find(f->power, "nvmlDeviceGetPowerUsage")
      .find(f->clock, "nvmlDeviceGetClockInfo")
      .find(f->slowdown, "nvmlDeviceGetCurrentClocksThrottleReasons")
      .find(f->ecc_errors, "nvmlDeviceGetTotalEccErrors")
      .find(f->remapped_rows, "nvmlDeviceGetRemappedRows")
      .find(f->mig_mode, "nvmlDeviceGetMigMode")
      .find(f->mig_count, "nvmlDeviceGetMaxMigDeviceCount")
      .find(f->mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex")
      .find(f->gpu_instance, "nvmlDeviceGetGpuInstanceId")
      .find(f->pci, "nvmlDeviceGetPciInfo_v3")
      .find(f->link_state, "nvmlDeviceGetNvLinkState")
      .find(f->link_type, "nvmlDeviceGetNvLinkRemoteDeviceType")
      .find(f->link_peer, "nvmlDeviceGetNvLinkRemotePciInfo_v2")
      .find(f->event_types, "nvmlDeviceGetSupportedEventTypes")
      .find(f->new_events, "nvmlEventSetCreate")
      .find(f->add_events, "nvmlDeviceRegisterEvents")
      .find(f->wait_event, "nvmlEventSetWait_v2")
      .find(f->free_events, "nvmlEventSetFree");
  return std::unique_ptr<Nvml>(new Nvml(std::move(f)));
}

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}

Nvml::~Nvml() {
  if (events_ != nullptr) call(functions_->free_events, events_);
  functions_->shutdown();
}

std::vector<Nvml::Found> Nvml::find() const {
  const Functions& f = *functions_;
  std::vector<Found> found;
  unsigned number = 0;
  if (f.count(&number) != kSuccess) return found;
  for (unsigned i = 0; i < number; ++i) {
    Found gpu;
    char brand[kTextSize] = {}, id[kTextSize] = {};
    // A device without UUID cannot be selected by CUDA_VISIBLE_DEVICES.
    if (f.by_index(i, &gpu.device) != kSuccess || f.uuid(gpu.device, id, kTextSize - 1) != kSuccess) {
      log::warn("CUDA device does not respond and is not offered", {{"index", i}});
      continue;
    }
    if (call(f.name, gpu.device, &brand[0], kTextSize - 1) != kSuccess) brand[0] = '\0';
    gpu.name = {i, brand, id};
    gpu.gpu = gpu.device;
    unsigned mode = 0, pending = 0;
    const bool mig = call(f.mig_mode, gpu.device, &mode, &pending) == kSuccess && mode == kMigMode;
    if (mig) {
      find_mig_devices(gpu, found);
    } else {
      found.push_back(std::move(gpu));
    }
  }
  return found;
}

void Nvml::find_mig_devices(const Found& gpu, std::vector<Found>& found) const {
  const Functions& f = *functions_;
  const std::size_t before = found.size();
  unsigned places = 0;
  if (call(f.mig_count, gpu.gpu, &places) != kSuccess) places = 0;
  for (unsigned i = 0; i < places; ++i) {
    Found mig{.gpu = gpu.gpu};
    char brand[kTextSize] = {}, id[kTextSize] = {};
    // A place without a MIG device fails.
    if (call(f.mig_by_index, gpu.gpu, i, &mig.device) != kSuccess ||
        f.uuid(mig.device, id, kTextSize - 1) != kSuccess)
      continue;
    const bool named = call(f.name, mig.device, &brand[0], kTextSize - 1) == kSuccess;
    mig.name = {gpu.name.index, named ? brand : gpu.name.brand + " MIG", id, gpu.name.uuid};
    if (call(f.gpu_instance, mig.device, &mig.gpu_instance) != kSuccess) mig.gpu_instance = kNoInstance;
    found.push_back(std::move(mig));
  }
  if (found.size() == before) {
    log::warn(
        "the GPU is in MIG mode without MIG devices and is not offered; create some with nvidia-smi mig, "
        "or turn MIG mode off",
        {{"index", gpu.name.index}, {"uuid", gpu.name.uuid}});
  }
}

std::vector<GpuName> Nvml::gpus() const {
  std::vector<GpuName> gpus;
  for (Found& found : find()) gpus.push_back(std::move(found.name));
  return gpus;
}

std::vector<NvLinks> Nvml::nvlinks(const std::vector<GpuName>& gpus) const {
  const Functions& f = *functions_;
  // Of a device at the other end of a link, only these members are set in every version of the driver.
  const auto address = [](const Functions::Pci& pci) {
    return std::to_string(pci.domain) + ":" + std::to_string(pci.bus) + ":" + std::to_string(pci.device);
  };
  std::vector<NvLinks> all;
  for (const GpuName& gpu : gpus) {
    NvLinks& links = all.emplace_back();
    NvmlDevice device = nullptr;
    Functions::Pci pci{};
    if (!gpu.mig_gpu.empty() || f.by_index(gpu.index, &device) != kSuccess ||
        call(f.pci, device, &pci) != kSuccess)
      continue;
    links.address = address(pci);
    for (unsigned link = 0; link < kMaxLinks; ++link) {
      unsigned active = 0;
      int type = 0;
      if (call(f.link_state, device, link, &active) != kSuccess || active != kLinkActive) continue;
      if (call(f.link_type, device, link, &type) == kSuccess && type == kLinkToSwitch) {
        links.nvswitch = true;
      } else if (call(f.link_peer, device, link, &pci) == kSuccess) {
        links.peers.push_back(address(pci));
      }
    }
  }
  return all;
}

void Nvml::select(const std::vector<std::string>& uuids) {
  const std::vector<Found> present = find();
  selected_.clear();
  for (const std::string& uuid : uuids) {
    const auto place = std::find_if(present.begin(), present.end(),
                                    [&](const Found& found) { return found.name.uuid == uuid; });
    selected_.push_back(place != present.end() ? *place : Found{.name = {.uuid = uuid}});
  }
}

std::vector<GpuReading> Nvml::read() const {
  std::vector<GpuReading> readings;
  for (const Found& one : selected_) readings.push_back(read(one));
  return readings;
}

bool Nvml::watch() {
  bool events = call(functions_->new_events, &events_) == kSuccess;
  if (!events) events_ = nullptr;
  std::vector<void*> watched;
  for (const Found& one : selected_) {
    // The events of MIG devices are those of their GPU.
    const bool done = std::find(watched.begin(), watched.end(), one.gpu) != watched.end();
    if (one.gpu == nullptr || done || !events) continue;
    watched.push_back(one.gpu);
    unsigned long long types = 0;
    events = call(functions_->event_types, one.gpu, &types) == kSuccess &&
             call(functions_->add_events, one.gpu, types & (kEventEcc | kEventXid), events_) == kSuccess;
  }
  return events;
}

GpuReading Nvml::read(const Found& selected) const {
  GpuReading reading;
  reading.lost = selected.device == nullptr;
  if (reading.lost) return reading;
  // An unsupported value is absent, and that of a MIG device is the one of its GPU. A GPU that has fallen off
  // the bus fails every call.
  const auto good = [&](auto* function, auto... arguments) {
    NvmlResult result = call(function, static_cast<NvmlDevice>(selected.device), arguments...);
    if (result != kSuccess && selected.gpu != selected.device)
      result = call(function, static_cast<NvmlDevice>(selected.gpu), arguments...);
    reading.lost = reading.lost || result == kGpuIsLost || result == kResetRequired;
    return result == kSuccess;
  };
  const Functions& f = *functions_;
  Functions::Utilization utilization{};
  Functions::Memory memory{};
  unsigned value = 0, corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  unsigned long long number = 0;
  if (good(f.utilization, &utilization)) reading.utilization = utilization.gpu / 100.0;
  if (good(f.memory, &memory)) {
    reading.memory_used = static_cast<double>(memory.used);
    reading.memory_total = static_cast<double>(memory.total);
  }
  if (good(f.temperature, kTemperatureGpu, &value)) reading.temperature = value;
  if (good(f.power, &value)) reading.power = value / 1e3;
  if (good(f.clock, kClockSm, &value)) reading.sm_clock = value * 1e6;
  if (good(f.clock, kClockMemory, &value)) reading.memory_clock = value * 1e6;
  if (good(f.slowdown, &number)) reading.slowdown = number;
  if (good(f.ecc_errors, kUncorrected, kSinceDriverLoad, &number)) reading.ecc_errors = number;
  if (good(f.remapped_rows, &corrected, &uncorrected, &pending, &failed)) {
    reading.remap_pending = pending != 0;
    reading.remap_failed = failed != 0;
  }
  return reading;
}

std::optional<GpuEvent> Nvml::wait(Duration timeout) const {
  Functions::EventData data{};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  if (events_ == nullptr ||
      call(functions_->wait_event, events_, &data, static_cast<unsigned>(milliseconds)) != kSuccess)
    return std::nullopt;
  // The driver may have opened the GPU again under another handle.
  char id[kTextSize] = {};
  if (functions_->uuid(data.device, id, kTextSize - 1) != kSuccess) id[0] = '\0';
  GpuEvent event;
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    const Found& one = selected_[i];
    const std::string& gpu = one.is_mig() ? one.name.mig_gpu : one.name.uuid;
    const bool same = (one.gpu != nullptr && one.gpu == data.device) || (id[0] != '\0' && gpu == id);
    // An error that the driver attributes to a part of the GPU concerns the MIG devices in it.
    const bool elsewhere = one.is_mig() && data.gpu_instance != kNoInstance &&
                           one.gpu_instance != kNoInstance && data.gpu_instance != one.gpu_instance;
    if (same && !elsewhere) event.gpus.push_back(i);
  }
  if (event.gpus.empty()) return std::nullopt;
  if (data.type == kEventXid) event.xid = data.data;
  return event;
}

}  // namespace det
