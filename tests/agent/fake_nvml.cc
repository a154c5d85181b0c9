// Stub of NVIDIA's management library: DET_FAKE_NVML_DEVICES devices, or three of which the second one fails.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
char devices[16];

const char* wanted() { return std::getenv("DET_FAKE_NVML_DEVICES"); }
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  const char* const text = wanted();
  *count = text == nullptr ? 3 : static_cast<unsigned>(std::atoi(text));
  return *count <= sizeof devices ? 0 : 2;  // NVML_ERROR_INVALID_ARGUMENT
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = devices + index;
  return wanted() == nullptr && index == 1 ? 15 : 0;  // NVML_ERROR_GPU_IS_LOST
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::strncpy(text, "Imaginary 9000", size);
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-fake-%d", static_cast<int>(static_cast<char*>(device) - devices));
  return 0;
}
}
