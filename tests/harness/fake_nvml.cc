// Stub of NVIDIA's management library for system metrics. It has three devices: the second fails, and the
// third has a name but no readings.
#include <cstdio>

extern "C" {
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char devices[3] = {0, 1, 2};
  *device = devices + index;
  return index == 1 ? 15 : 0;  // NVML_ERROR_GPU_IS_LOST
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%d%d%d", *static_cast<char*>(device), 7, 7);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* out) {
  *out = {40, 10};
  return *static_cast<char*>(device) == 2 ? 3 : 0;  // NVML_ERROR_NOT_SUPPORTED
}
int nvmlDeviceGetMemoryInfo(void*, Memory* out) {
  *out = {1000, 600, 400};
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* degrees) {
  *degrees = 61;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 250'500;
  return 0;
}
}
