#include "harness/src/observability/device_events.h"

#include <torch/csrc/profiler/api.h>
#if __has_include(<torch/csrc/profiler/stubs/base.h>)
#include <torch/csrc/profiler/stubs/base.h>
#endif

#include <exception>

namespace det {
namespace {

using torch::profiler::impl::ProfilerStubs;

/// Types of device numbers and events, which differ between versions of LibTorch.
template <typename Function>
struct StubTypes;
template <typename DeviceNumber, typename DeviceEvent>
struct StubTypes<void (ProfilerStubs::*)(DeviceNumber*, std::shared_ptr<DeviceEvent>*, std::int64_t*) const> {
  using Number = DeviceNumber;
  using Event = DeviceEvent;
};
using Stub = StubTypes<decltype(&ProfilerStubs::record)>;

const ProfilerStubs& stubs() { return *torch::profiler::impl::cudaStubs(); }

}  // namespace

bool has_device_events() { return stubs().enabled(); }

DeviceMark mark_device() {
  Stub::Number device = -1;
  std::shared_ptr<Stub::Event> event;
  std::int64_t ignored = 0;
  stubs().record(&device, &event, &ignored);
  return {.event = event, .device = device};
}

void synchronize_devices() { stubs().synchronize(); }

std::int64_t device_time_between(const std::shared_ptr<void>& begin, const std::shared_ptr<void>& end) {
  const auto first = std::static_pointer_cast<Stub::Event>(begin),
             last = std::static_pointer_cast<Stub::Event>(end);
  try {
    return static_cast<std::int64_t>(static_cast<double>(stubs().elapsed(&first, &last)) * 1000);
  } catch (const std::exception&) {
    return 0;  // events of two GPUs
  }
}

}  // namespace det
