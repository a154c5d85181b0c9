// Stub of NVIDIA's management library with three devices; the second one fails.
#include <cstdio>
#include <cstring>

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char devices[3];
  *device = devices + index;
  return index == 1 ? 15 : 0;  // NVML_ERROR_GPU_IS_LOST
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::strncpy(text, "Imaginary 9000", size);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%p", device);
  return 0;
}
}
