// A queue of device work beside the caller's own, on which NCCL runs its collectives.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

namespace det {

/// Work on this queue runs in order, concurrently with the caller's queue. Used by one thread. Errors are
/// c10::Error.
class SideQueue {
 public:
  /// The end of the work that was in the queue at mark().
  class Mark {
   public:
    virtual ~Mark() = default;
    /// Orders the caller's later work after the mark. On CUDA it does not block the host.
    virtual void block() = 0;
    /// Returns whether the work is complete, without blocking.
    virtual bool done() const = 0;
  };

  virtual ~SideQueue() = default;
  /// The device's stream as NCCL takes it: a cudaStream_t.
  virtual void* handle() const = 0;
  /// Orders later work of this queue after the caller's work so far. Memory of `tensors` is not reused before
  /// this queue has finished with it.
  virtual void enter(const std::vector<torch::Tensor>& tensors) = 0;
  virtual std::unique_ptr<Mark> mark() = 0;
};

/// Whether this library was built with a LibTorch for CUDA.
bool built_with_cuda();

/// A stream of high priority on a CUDA device. Throws std::runtime_error when this library was built without
/// CUDA.
std::unique_ptr<SideQueue> make_cuda_queue(const torch::Device& device);

}  // namespace det
