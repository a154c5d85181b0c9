// Owns collectives on tensors between the ranks of a trial: over shared memory between ranks of one machine,
// Gloo (TCP) between machines, NCCL on CUDA devices.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>

#include "det/distributed.h"

namespace det {

/// A collective under way. Its tensor must live, and not be touched, until wait() returns.
class Work {
 public:
  virtual ~Work() = default;
  /// Returns when the result is in the tensor (CUDA: when it is ordered before what the current stream does
  /// next). Throws std::runtime_error naming the transport when a rank is gone.
  virtual void wait() = 0;
};

enum class Reduction {
  kSum,
  kMean,  ///< the sum times 1 / ranks; not of int64
};

enum class Start {
  kNow,     ///< beside what the caller does until wait()
  kOnWait,  ///< the caller waits at once: it may be done there, without the way to another thread
};

/// Every call must be made by all ranks, in the same order, from one thread. Results are the same bits on
/// every rank. Tensors are contiguous, of the communicator's device.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual const char* name() const = 0;  ///< "shm", "gloo", "nccl"
  virtual int size() const = 0;
  /// tensor = sum or mean over ranks, in place. float, double, bfloat16, half (both added in float and
  /// rounded once), int64.
  virtual std::unique_ptr<Work> all_reduce(torch::Tensor tensor, Reduction how = Reduction::kSum,
                                           Start start = Start::kNow) = 0;
  /// output [size * n] = the inputs [n] of all ranks, in the order of ranks.
  virtual std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) = 0;
  /// tensor = rank 0's, in place.
  virtual std::unique_ptr<Work> broadcast(torch::Tensor tensor) = 0;
};

/// `backend` is "" (nccl on CUDA; on the CPU shm when all ranks are on one machine, else gloo), "shm", "gloo"
/// or "nccl". Null for one process. Uses `distributed` to find the others; throws std::runtime_error when
/// they cannot be reached.
std::unique_ptr<Communicator> make_communicator(DistributedContext& distributed, const torch::Device& device,
                                                const std::string& backend = "");

}  // namespace det
