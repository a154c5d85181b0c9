// Time on a GPU between two points of a program, by the event functions that LibTorch's profiler uses. A
// build without CUDA has none.
#pragma once

#include <cstdint>
#include <memory>

namespace det {

/// An event in the current stream of the current GPU.
struct DeviceMark {
  std::shared_ptr<void> event;
  int device = -1;
};

/// Whether this build of LibTorch supplies events, and a GPU is usable.
bool has_device_events();
/// Records an event. Does not wait for the GPU.
DeviceMark mark_device();
/// Blocks until the work of all GPUs is done.
void synchronize_devices();
/// Nanoseconds between two events that have happened; 0 for events of different GPUs.
std::int64_t device_time_between(const std::shared_ptr<void>& begin, const std::shared_ptr<void>& end);

}  // namespace det
