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
  for (const GpuName& gpu : gpus) by_index[gpu.index] = gpu.uuid;
  if (visible == nullptr) return by_index;
  std::vector<std::string> uuids;
  for (const std::string& piece : split(visible, ',')) {
    const std::string name(trim(piece));
    std::size_t index = count;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool number = error == std::errc() && end == name.data() + name.size();
    const auto found =
        number ? by_index.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(index, count))
               : std::find_if(by_index.begin(), by_index.end(), [&](const std::string& uuid) {
                   return !name.empty() && uuid.starts_with(name);
                 });
    // CUDA ignores the rest after an unknown name.
    if (found == by_index.end()) break;
    uuids.push_back(*found);
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

std::vector<GpuName> Nvml::gpus() const {
  std::vector<GpuName> gpus;
  unsigned number = 0;
  if (functions_->count(&number) != kSuccess) return gpus;
  for (unsigned i = 0; i < number; ++i) {
    NvmlDevice device = nullptr;
    char brand[kTextSize] = {}, id[kTextSize] = {};
    // A device without UUID cannot be selected by CUDA_VISIBLE_DEVICES.
    if (functions_->by_index(i, &device) != kSuccess ||
        functions_->uuid(device, id, kTextSize - 1) != kSuccess) {
      log::warn("CUDA device does not respond and is not offered", {{"index", i}});
      continue;
    }
    if (call(functions_->name, device, &brand[0], kTextSize - 1) != kSuccess) brand[0] = '\0';
    gpus.push_back({i, brand, id});
  }
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
    if (f.by_index(gpu.index, &device) != kSuccess || call(f.pci, device, &pci) != kSuccess) continue;
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
  uuids_ = uuids;
  devices_.assign(uuids.size(), nullptr);
  for (const GpuName& gpu : gpus()) {
    const auto place = std::find(uuids.begin(), uuids.end(), gpu.uuid);
    if (place != uuids.end())
      functions_->by_index(gpu.index, &devices_[static_cast<std::size_t>(place - uuids.begin())]);
  }
}

std::vector<GpuReading> Nvml::read() const {
  std::vector<GpuReading> readings;
  for (void* const device : devices_) readings.push_back(read(device));
  return readings;
}

bool Nvml::watch() {
  bool events = call(functions_->new_events, &events_) == kSuccess;
  if (!events) events_ = nullptr;
  for (void* const device : devices_) {
    if (device == nullptr || !events) continue;
    unsigned long long types = 0;
    events = call(functions_->event_types, device, &types) == kSuccess &&
             call(functions_->add_events, device, types & (kEventEcc | kEventXid), events_) == kSuccess;
  }
  return events;
}

GpuReading Nvml::read(void* device) const {
  GpuReading reading;
  reading.lost = device == nullptr;
  if (reading.lost) return reading;
  // An unsupported value is absent. A GPU that has fallen off the bus fails every call.
  const auto good = [&](NvmlResult result) {
    reading.lost = reading.lost || result == kGpuIsLost || result == kResetRequired;
    return result == kSuccess;
  };
  const Functions& f = *functions_;
  Functions::Utilization utilization{};
  Functions::Memory memory{};
  unsigned value = 0, corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  unsigned long long number = 0;
  if (good(call(f.utilization, device, &utilization))) reading.utilization = utilization.gpu / 100.0;
  if (good(call(f.memory, device, &memory))) {
    reading.memory_used = static_cast<double>(memory.used);
    reading.memory_total = static_cast<double>(memory.total);
  }
  if (good(call(f.temperature, device, kTemperatureGpu, &value))) reading.temperature = value;
  if (good(call(f.power, device, &value))) reading.power = value / 1e3;
  if (good(call(f.clock, device, kClockSm, &value))) reading.sm_clock = value * 1e6;
  if (good(call(f.clock, device, kClockMemory, &value))) reading.memory_clock = value * 1e6;
  if (good(call(f.slowdown, device, &number))) reading.slowdown = number;
  if (good(call(f.ecc_errors, device, kUncorrected, kSinceDriverLoad, &number))) reading.ecc_errors = number;
  if (good(call(f.remapped_rows, device, &corrected, &uncorrected, &pending, &failed))) {
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
  GpuEvent event;
  while (event.gpu < devices_.size() && devices_[event.gpu] != data.device) ++event.gpu;
  // The driver may have opened the GPU again under another handle.
  char id[kTextSize] = {};
  if (event.gpu == devices_.size() && functions_->uuid(data.device, id, kTextSize - 1) == kSuccess) {
    const auto place = std::find(uuids_.begin(), uuids_.end(), id);
    event.gpu = static_cast<std::size_t>(place - uuids_.begin());
  }
  if (event.gpu == devices_.size()) return std::nullopt;
  if (data.type == kEventXid) event.xid = data.data;
  return event;
}

}  // namespace det
