// Owns the differences between LibTorch versions in autocast: one setting a device type since 2.4, one
// function a device before.
#pragma once

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace det::compat {

struct AutocastSetting {
  bool enabled;
  at::ScalarType dtype;
};

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
inline AutocastSetting autocast(at::DeviceType device) {
  return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}
inline void set_autocast(at::DeviceType device, const AutocastSetting& setting) {
  at::autocast::set_autocast_enabled(device, setting.enabled);
  at::autocast::set_autocast_dtype(device, setting.dtype);
}
#else
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
