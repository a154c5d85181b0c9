// Autocast API of different LibTorch versions: one function for all devices since 2.4, one function per
// device before.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace det::compat {

/// Autocast state of a device type on the current thread.
/// Operators on the autocast list run in `dtype` while enabled.
struct AutocastSetting {
  bool enabled;
  at::ScalarType dtype;
};

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
/// Reads and sets the state of the current thread. `device` is the CPU or CUDA.
inline AutocastSetting autocast(at::DeviceType device) {
  return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}
inline void set_autocast(at::DeviceType device, const AutocastSetting& setting) {
  at::autocast::set_autocast_enabled(device, setting.enabled);
  at::autocast::set_autocast_dtype(device, setting.dtype);
}
#else
/// The same by the functions of earlier versions, which have separate settings for the CPU and for CUDA.
inline AutocastSetting autocast(at::DeviceType device) {
  if (device == at::kCPU) return {at::autocast::is_cpu_enabled(), at::autocast::get_autocast_cpu_dtype()};
  return {at::autocast::is_enabled(), at::autocast::get_autocast_gpu_dtype()};
}
inline void set_autocast(at::DeviceType device, const AutocastSetting& setting) {
  if (device == at::kCPU) {
    at::autocast::set_cpu_enabled(setting.enabled);
    at::autocast::set_autocast_cpu_dtype(setting.dtype);
  } else {
    at::autocast::set_enabled(setting.enabled);
    at::autocast::set_autocast_gpu_dtype(setting.dtype);
  }
}
#endif

}  // namespace det::compat
