// Owns what a way of talking between ranks must offer, and the thread that makes a Communicator of it.
#pragma once

#include <torch/types.h>

#include <memory>

#include "communicator.h"

namespace det {

/// Collectives that return when they are done. All but cancel() are called by one thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;
  virtual void all_reduce(torch::Tensor& tensor, Reduction how) = 0;
  virtual void all_gather(torch::Tensor& output, const torch::Tensor& input) = 0;
  virtual void broadcast(torch::Tensor& tensor) = 0;
  /// From any thread: what is under way, and all that comes, ends soon with an exception, where the transport
  /// can.
  virtual void cancel() {}
};

/// One thread runs the collectives in the order of calls, beside whatever the caller does; after the first
/// failure all end with it. A small collective with nothing before it waits for the next call, or runs within
/// wait(): two changes of threads would take longer than it.
std::unique_ptr<Communicator> run_beside(std::unique_ptr<Transport> transport, int size);

/// Over shared memory of one machine. Throws std::runtime_error on all ranks alike.
std::unique_ptr<Transport> make_shm_transport(DistributedContext& distributed);
/// Over Gloo. Throws std::runtime_error.
std::unique_ptr<Transport> make_gloo_transport(DistributedContext& distributed);
/// Over NCCL; has its own stream instead of a thread. Throws std::runtime_error saying what is missing.
std::unique_ptr<Communicator> make_nccl_communicator(DistributedContext& distributed,
                                                     const torch::Device& device);

}  // namespace det
