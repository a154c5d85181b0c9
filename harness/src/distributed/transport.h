// The interface of a collective backend, and the thread that turns it into a Communicator.
#pragma once

#include <torch/types.h>

#include <memory>

#include "harness/src/distributed/communicator.h"
#include "harness/src/distributed/side_queue.h"

namespace det {

/// Blocking collectives. All methods but cancel() are called by one thread at a time. Tensors are contiguous.
/// Errors are std::runtime_error.
class Transport {
 public:
  virtual ~Transport() = default;
  /// "shm" or "gloo".
  virtual const char* name() const = 0;
  /// tensor = sum or mean over ranks, in place.
  virtual void all_reduce(torch::Tensor& tensor, Reduction how) = 0;
  /// output [size * n] = the inputs [n] of all ranks, in rank order. `input` may be its place in `output`.
  virtual void all_gather(torch::Tensor& output, const torch::Tensor& input) = 0;
  /// tensor = rank 0's, in place.
  virtual void broadcast(torch::Tensor& tensor) = 0;
  /// Makes current and future calls fail soon, where the backend supports it. Any thread.
  virtual void cancel() {}
};

/// Runs the collectives of `transport` on one thread, in call order, concurrently with the caller. After the
/// first failure all calls fail with it. A small collective with an empty queue is deferred to the next call
/// or to wait(), because two thread switches would take longer than the collective.
std::unique_ptr<Communicator> run_beside(std::unique_ptr<Transport> transport, int size);

/// A transport over the shared memory of one machine. Collective. Throws
/// std::runtime_error, on all ranks or none.
std::unique_ptr<Transport> make_shm_transport(DistributedContext& distributed);
/// A transport over Gloo (TCP). Collective. Throws std::runtime_error.
std::unique_ptr<Transport> make_gloo_transport(DistributedContext& distributed);
/// A communicator over NCCL, with `queue` in place of a thread. Collective. Throws std::runtime_error naming
/// what is missing.
std::unique_ptr<Communicator> make_nccl_communicator(DistributedContext& distributed,
                                                     const torch::Device& device,
                                                     std::unique_ptr<SideQueue> queue);

}  // namespace det
