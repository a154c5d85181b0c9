// LibTorch internals for reading data: the threads of operators, and copies to a GPU concurrent with
// computation. Requires no CUDA headers: c10's stream interface also exists in builds without CUDA, where
// this code is not reached.
#pragma once

#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <optional>

#include "det/batch.h"

namespace det::compat {

/// Scope in which operators on this thread use a single thread. Results are then bitwise equal on every
/// loader thread, and reading does not take cores from training. Without effect if LibTorch is built without
/// OpenMP.
class OneThread {
 public:
  /// get_num_threads() makes LibTorch initialize this thread, which would otherwise override the setting
  /// later.
  OneThread() : before_(at::get_num_threads()) { set(1); }
  ~OneThread() { set(before_); }
  OneThread(const OneThread&) = delete;

 private:
  /// No effect when the process has no OpenMP runtime.
  static void set(int threads) {
    // Unlike at::set_num_threads, this does not affect threads that start later.
    static const auto omp_set = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    if (omp_set != nullptr) omp_set(threads);
  }
  int before_;
};

/// Copies batches to a GPU on a separate stream. Used on the training thread.
class SideCopy {
 public:
  explicit SideCopy(const torch::Device& device)
      : streams_(device.type()),
        device_(device.has_index() ? device : streams_.getDevice()),
        side_(streams_.getStreamFromGlobalPool(device_)) {}

  /// Starts a copy; the result may be used after arrive(). LibTorch's allocator keeps pinned memory alive
  /// until the copy is complete.
  Batch depart(const Batch& batch) {
    const c10::StreamGuard guard(side_);
    Batch copy = to_device(batch, device_);
    copied_.emplace(device_.type());
    copied_->record(side_);
    return copy;
  }
  /// Makes the current stream wait for the most recent copy, and keeps its memory from being reused before
  /// the current stream has used it.
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
  /// The stream of the copies.
  c10::Stream side_;
  /// End of the most recent copy.
  std::optional<c10::Event> copied_;
};

}  // namespace det::compat
