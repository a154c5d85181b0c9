// Stand-in of NVIDIA's management library, loaded under its name. It plays the script in the directory
// DET_SCRIPTED_NVML:
//
//   gpus     one line for each GPU: its UUID; in MIG mode then "mig" and the UUIDs of its MIG devices
//   events   a FIFO; each line "GPU TYPE DATA" is one event, such as "0 8 79" for Xid 79. "GPU TYPE DATA N"
//   is
//            one of the GPU instance N; that of the first MIG device is 1
//   GPU      optional, read at each call: lines "KEY VALUE" with the keys of get() below
//   GPU.MIG  the same of a MIG device, by its number from 0
//
// A value that is not named is unsupported, except "lost": then each call fails. "linkN P" is an active
// NVLink to the GPU with the index P, or to an NVSwitch if P is 100. With "linkN_inactive 1" it is inactive,
// and with "no_link_types 1" the driver does not report what is at the other end.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6, kTimeout = 10, kLost = 15;
constexpr unsigned long long kSwitch = 100;
constexpr unsigned kNoInstance = 0xFFFFFFFF;

std::string path(const std::string& name) {
  return std::string(std::getenv("DET_SCRIPTED_NVML")) + "/" + name;
}

struct Device {
  std::string uuid;
  std::string file;  ///< with its values
  Device* gpu = nullptr;
  unsigned number = 0;    ///< of a GPU among the GPUs; of a MIG device in its GPU
  bool mig_mode = false;  ///< of a GPU
  std::deque<Device> mig_devices;
};

/// Handles are pointers to its elements. They are valid until the library is initialized again.
std::deque<Device> gpus;

void read_gpus() {
  gpus.clear();
  std::ifstream file(path("gpus"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    const auto number = static_cast<unsigned>(gpus.size());
    Device& gpu = gpus.emplace_back();
    words >> gpu.uuid;
    gpu.file = std::to_string(number);
    gpu.number = number;
    gpu.gpu = &gpu;
    std::string word;
    gpu.mig_mode = static_cast<bool>(words >> word);
    for (unsigned i = 0; words >> word; ++i)
      gpu.mig_devices.push_back({word, gpu.file + "." + std::to_string(i), &gpu, i, false, {}});
  }
}

Device* of(void* handle) { return static_cast<Device*>(handle); }
bool is_mig(void* handle) { return of(handle)->gpu != handle; }

std::optional<unsigned long long> value(void* device, const std::string& key) {
  std::ifstream file(path(of(device)->file));
  std::string name;
  for (unsigned long long number = 0; file >> name >> number;)
    if (name == key) return number;
  return std::nullopt;
}

template <typename T>
int get(void* device, const std::string& key, T* out) {
  if (value(device, "lost")) return kLost;
  const auto found = value(device, key);
  if (!found) return kNotSupported;
  *out = static_cast<T>(*found);
  return kSuccess;
}

}  // namespace

extern "C" {
int nvmlInit_v2() {
  if (std::getenv("DET_SCRIPTED_NVML") == nullptr) return kInvalid;
  read_gpus();
  return kSuccess;
}
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus.size());
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpus.size()) return kInvalid;
  *device = &gpus[index];
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  std::snprintf(text, size, is_mig(device) ? "Scripted 100 MIG 1g.10gb" : "Scripted 100");
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "%s", of(device)->uuid.c_str());
  return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = of(device)->mig_mode ? 1 : 0;
  return kSuccess;
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  *count = of(device)->mig_mode ? 7 : 0;
  return kSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** mig) {
  if (index >= of(device)->mig_devices.size()) return kNotFound;
  *mig = &of(device)->mig_devices[index];
  return kSuccess;
}
int nvmlDeviceGetGpuInstanceId(void* device, unsigned* id) {
  *id = of(device)->number + 1;
  return is_mig(device) ? kSuccess : kNotSupported;
}
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char address[32];
};
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  *pci = {"", 0, 16 + of(device)->number, 0, 0, 0, ""};
  return kSuccess;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* active) {
  const std::string name = "link" + std::to_string(link);
  if (link >= 18) return kInvalid;
  *active = value(device, name) && !value(device, name + "_inactive") ? 1 : 0;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* type) {
  if (value(device, "no_link_types")) return kNotSupported;
  *type = value(device, "link" + std::to_string(link)) == kSwitch ? 2 : 0;
  return kSuccess;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, Pci* pci) {
  const auto peer = value(device, "link" + std::to_string(link));
  if (!peer) return kNotSupported;
  *pci = {"", 0, 16 + static_cast<unsigned>(*peer), 0, 0, 0, ""};
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) { return get(device, "utilization", rates); }
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[1] = 0;
  const int result = get(device, "memory_total", memory);
  return result != kSuccess ? result : get(device, "memory_used", memory + 2);
}
int nvmlDeviceGetTemperature(void* device, unsigned, unsigned* degrees) {
  return get(device, "temperature", degrees);
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) { return get(device, "power", milliwatts); }
int nvmlDeviceGetClockInfo(void* device, unsigned type, unsigned* megahertz) {
  return get(device, type == 1 ? "sm_clock" : "memory_clock", megahertz);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return get(device, "slowdown", reasons);
}
int nvmlDeviceGetTotalEccErrors(void* device, unsigned, unsigned, unsigned long long* count) {
  return get(device, "ecc", count);
}
int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = *uncorrected = *failed = 0;
  (void)get(device, "remap_failed", failed);
  return get(device, "remap_pending", pending);
}
int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
  *types = 0x8 | 0x2 | 0x1;
  return kSuccess;
}
int nvmlEventSetCreate(void** set) {
  // For reading and writing: a FIFO without a writer has an end.
  const int fd = ::open(path("events").c_str(), O_RDWR | O_CLOEXEC);
  *set = new int(fd);
  return fd >= 0 ? kSuccess : kNotSupported;
}
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void*) {
  return types == (0x8 | 0x2) && !is_mig(device) ? kSuccess : kInvalid;
}
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
int nvmlEventSetWait_v2(void* set, Event* event, unsigned milliseconds) {
  pollfd waits{*static_cast<int*>(set), POLLIN, 0};
  if (::poll(&waits, 1, static_cast<int>(milliseconds)) <= 0) return kTimeout;
  std::string line;
  for (char c = 0; ::read(waits.fd, &c, 1) == 1 && c != '\n';) line += c;
  unsigned gpu = 0;
  event->gpu_instance = event->compute_instance = kNoInstance;
  if (std::sscanf(line.c_str(), "%u %llu %llu %u", &gpu, &event->type, &event->data, &event->gpu_instance) <
      3)
    return kInvalid;
  event->device = &gpus[gpu];
  return kSuccess;
}
int nvmlEventSetFree(void* set) {
  ::close(*static_cast<int*>(set));
  delete static_cast<int*>(set);
  return kSuccess;
}
}
