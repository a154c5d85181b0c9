// Stand-in of NVIDIA's management library, loaded under its name. It plays the script in the directory
// DET_SCRIPTED_NVML:
//
//   gpus    one line for each GPU: its UUID
//   events  a FIFO; each line "GPU TYPE DATA" is one event, such as "0 8 79" for Xid 79
//   GPU     optional, read at each call: lines "KEY VALUE" with the keys of value() below
//
// A value that is not named is unsupported, except "lost": then each call fails.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6, kTimeout = 10, kLost = 15;

std::string path(const std::string& name) {
  return std::string(std::getenv("DET_SCRIPTED_NVML")) + "/" + name;
}

/// Handles are pointers into this list.
const std::vector<std::string>& gpus() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    std::ifstream file(path("gpus"));
    for (std::string line; std::getline(file, line);) found.push_back(line);
    return found;
  }();
  return all;
}

std::size_t index_of(void* device) {
  return static_cast<std::size_t>(static_cast<const std::string*>(device) - gpus().data());
}

void* handle(std::size_t index) { return const_cast<std::string*>(&gpus()[index]); }

std::optional<unsigned long long> value(void* device, const std::string& key) {
  std::ifstream file(path(std::to_string(index_of(device))));
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
int nvmlInit_v2() { return std::getenv("DET_SCRIPTED_NVML") != nullptr ? kSuccess : kInvalid; }
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus().size());
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpus().size()) return kInvalid;
  *device = handle(index);
  return kSuccess;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (std::size_t i = 0; i < gpus().size(); ++i) {
    if (gpus()[i] != uuid) continue;
    *device = handle(i);
    return kSuccess;
  }
  return kNotFound;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "Scripted 100");
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "%s", gpus()[index_of(device)].c_str());
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
int nvmlDeviceRegisterEvents(void*, unsigned long long types, void*) {
  return types == (0x8 | 0x2) ? kSuccess : kInvalid;
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
  if (std::sscanf(line.c_str(), "%u %llu %llu", &gpu, &event->type, &event->data) != 3) return kInvalid;
  event->device = handle(gpu);
  return kSuccess;
}
int nvmlEventSetFree(void* set) {
  ::close(*static_cast<int*>(set));
  delete static_cast<int*>(set);
  return kSuccess;
}
}
