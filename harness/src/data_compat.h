// Owns what reading data needs from LibTorch's inside: threads of operators, and copying to a GPU beside the
// computation. No CUDA headers: c10's stream interface is the same in builds without CUDA, where none of it
// is reached.
#pragma once

#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <optional>

#include "det/batch.h"

namespace det::compat {

/// While it lives, operators on this thread use no other threads. The same bits come out on every thread, and
/// data does not take the cores of training. Does nothing where LibTorch is not built with OpenMP.
class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { set(1); }  // asking makes LibTorch set this thread up first
  ~OneThread() { set(before_); }
  OneThread(const OneThread&) = delete;

 private:
  static void set(int threads) {
    // at::set_num_threads would change it for threads that start later, too.
    static const auto omp_set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (omp_set != nullptr) omp_set(threads);
  }
  int before_;
};

/// Copies batches to a GPU on a stream of its own. One thread, that of training.
class SideCopy {
 public:
  explicit SideCopy(const torch::Device& device)
      : streams_(device.type()),
        device_(device.has_index() ? device : streams_.getDevice()),
        side_(streams_.getStreamFromGlobalPool(device_)) {}

  /// Begins the copy; the batch may be used after arrive(). Pinned memory is kept until the copy is over
  /// (LibTorch's allocator does that).
  Batch depart(const Batch& batch) {
    const c10::StreamGuard guard(side_);
    Batch copy = to_device(batch, device_);
    copied_.emplace(device_.type());
    copied_->record(side_);
    return copy;
  }
  /// The stream of the computation waits for the copy begun last, and its memory is not reused before that is
  /// done.
  void arrive(const Batch& copy) {
    const c10::Stream current = streams_.getStream(device_);
    copied_->block(current);
    copy.map([&](const torch::Tensor& tensor) {
      tensor.record_stream(current);
      return tensor;
    });
  }

 private:
  c10::impl::VirtualGuardImpl streams_;
  torch::Device device_;
  c10::Stream side_;
  std::optional<c10::Event> copied_;
};

}  // namespace det::compat
