// Collectives on tensors between the ranks of a trial: shared memory on one machine, Gloo (TCP) between
// machines, NCCL on CUDA devices.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>

#include "det/distributed.h"

namespace det {

/// A collective in progress. Its tensors must stay alive and untouched until wait() returns.
class Work {
 public:
  virtual ~Work() = default;
  /// Blocks until the result is in the tensor. On CUDA it only orders the result before later work of the
  /// current stream. Throws std::runtime_error naming the transport when a rank is gone.
  virtual void wait() = 0;
};

/// Operation of all_reduce.
enum class Reduction {
  kSum,
  kMean,  ///< the sum times 1 / ranks; not for int64
};

/// When a collective starts.
enum class Start {
  kNow,  ///< at once, concurrently with the caller
  /// The caller waits at once, so the collective may run on its thread, without a thread switch.
  kOnWait,
};

/// Collective operations. Every rank must make the same calls in the same order, from one thread. Results are
/// bitwise identical on all ranks. Tensors must be contiguous and on the communicator's device.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual const char* name() const = 0;  ///< "shm", "gloo" or "nccl"
  virtual int size() const = 0;
  /// tensor = sum or mean over ranks, in place. Types: float, double, int64, and bfloat16 and half (added in
  /// float and rounded once).
  virtual std::unique_ptr<Work> all_reduce(torch::Tensor tensor, Reduction how = Reduction::kSum,
                                           Start start = Start::kNow) = 0;
  /// output [size * n] = the inputs [n] of all ranks, in rank order. `input` may be its place in `output`.
  virtual std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) = 0;
  /// tensor = rank 0's tensor, in place.
  virtual std::unique_ptr<Work> broadcast(torch::Tensor tensor) = 0;
};

/// Sets a tensor of any type and layout to rank 0's. Its strides are equal on all ranks. Collective; blocks.
void share_tensor(Communicator& communicator, torch::Tensor tensor);

/// Creates a communicator; null for a single process. `backend` is "shm", "gloo", "nccl", or "" for the
/// default: nccl on CUDA; on the CPU shm when all ranks are on one machine, else gloo. Uses `distributed` to
/// connect the ranks. Collective. Throws std::invalid_argument for an unsuitable backend, and
/// std::runtime_error when ranks cannot be reached.
std::unique_ptr<Communicator> make_communicator(DistributedContext& distributed, const torch::Device& device,
                                                const std::string& backend = "");

}  // namespace det
