// The "cudaStream_t" of tests without a device.
#pragma once

namespace det::testing {

struct HostStream {
  void* owner;
  /// Runs `run(context)` after all earlier work of the stream. Does not block.
  void (*enqueue)(HostStream*, void (*run)(void*), void* context);
};

}  // namespace det::testing
