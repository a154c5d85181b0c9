// Collectives over NCCL between CUDA devices. libnccl.so.2 is loaded at run time. Collectives run on their
// own stream, ordered against the caller's stream by events. Compiled when LibTorch has CUDA.
#include <stdexcept>

#include "harness/src/distributed/transport.h"

// CPU packages of LibTorch contain the CUDA headers, too, but not the configuration that a CUDA build writes.
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>) && __has_include(<nccl.h>)
#define DET_HAS_NCCL 1
#endif

#if DET_HAS_NCCL
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "common/base/shared_library.h"
#include "common/base/wait.h"

namespace det {
namespace {

/// The NCCL functions used here, with the types of the toolkit's nccl.h.
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) init_rank;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclGetErrorString) error_string;

  /// Loads the library at the first call. Throws std::runtime_error when it is missing or incomplete.
  static const Nccl& get() {
    static const Nccl functions = [] {
      auto library = SharedLibrary::open("libnccl.so.2");
      if (!library) throw std::runtime_error("nccl: " + library.error().message + "; install libnccl2");
      Nccl nccl{};
      library->find(nccl.get_unique_id, "ncclGetUniqueId")
          .find(nccl.init_rank, "ncclCommInitRank")
          .find(nccl.destroy, "ncclCommDestroy")
          .find(nccl.abort, "ncclCommAbort")
          .find(nccl.all_reduce, "ncclAllReduce")
          .find(nccl.all_gather, "ncclAllGather")
          .find(nccl.broadcast, "ncclBroadcast")
          .find(nccl.error_string, "ncclGetErrorString");
      if (auto complete = library->complete(); !complete)
        throw std::runtime_error("nccl: " + complete.error().message);
      return nccl;
    }();
    return functions;
  }
};

void check(ncclResult_t result) {
  if (result != ncclSuccess)
    throw std::runtime_error(std::string("nccl: ") + Nccl::get().error_string(result));
}

ncclDataType_t type_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kFloat:
      return ncclFloat32;
    case torch::kDouble:
      return ncclFloat64;
    case torch::kBFloat16:
      return ncclBfloat16;
    case torch::kHalf:
      return ncclFloat16;
    case torch::kLong:
      return ncclInt64;
    default:
      throw std::invalid_argument(std::string("nccl: no collectives of ") +
                                  c10::toString(tensor.scalar_type()));
  }
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(DistributedContext& distributed, const torch::Device& device)
      : distributed_(distributed),
        guard_device_(device),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {
    ncclUniqueId id{};
    if (distributed.is_chief()) check(Nccl::get().get_unique_id(&id));
    const std::string bytes = distributed.broadcast_bytes({id.internal, sizeof id.internal});
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    const c10::cuda::CUDAGuard guard(device);
    check(Nccl::get().init_rank(&comm_, distributed.size(), id, distributed.rank()));
    // A kernel that waits for a dead rank ends only when its communicator is aborted. Setting `ended_` makes
    // sure that the communicator is either aborted or destroyed.
    watcher_ = std::thread([this] {
      while (!wait_until([this] { return closing_ || !distributed_.first_gone().empty(); },
                         std::chrono::hours(24))) {
      }
      if (!closing_ && !ended_.exchange(true)) Nccl::get().abort(comm_);
    });
  }

  ~NcclCommunicator() override {
    closing_ = true;
    watcher_.join();
    if (!ended_) Nccl::get().destroy(comm_);
  }

  const char* name() const override { return "nccl"; }
  int size() const override { return distributed_.size(); }
  std::unique_ptr<Work> all_reduce(torch::Tensor tensor, Reduction how, Start) override {
    return enqueue({tensor}, [&](cudaStream_t stream) {
      return Nccl::get().all_reduce(tensor.data_ptr(), tensor.data_ptr(),
                                    static_cast<std::size_t>(tensor.numel()), type_of(tensor),
                                    how == Reduction::kMean ? ncclAvg : ncclSum, comm_, stream);
    });
  }
  std::unique_ptr<Work> all_gather(torch::Tensor output, torch::Tensor input) override {
    // Data is copied, not added, so every type is sent as bytes.
    return enqueue({output, input}, [&](cudaStream_t stream) {
      return Nccl::get().all_gather(input.data_ptr(), output.data_ptr(), input.nbytes(), ncclUint8, comm_,
                                    stream);
    });
  }
  std::unique_ptr<Work> broadcast(torch::Tensor tensor) override {
    return enqueue({tensor}, [&](cudaStream_t stream) {
      return Nccl::get().broadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), ncclUint8, 0, comm_,
                                   stream);
    });
  }

 private:
  /// A collective that has been enqueued.
  class Ordered final : public Work {
   public:
    Ordered(NcclCommunicator& owner, at::cuda::CUDAEvent event) : owner_(owner), event_(std::move(event)) {}
    /// Orders the caller's stream after the collective; does not block the host.
    void wait() override {
      owner_.throw_if_gone();
      event_.block(c10::cuda::getCurrentCUDAStream(owner_.guard_device_.index()));
    }

   private:
    NcclCommunicator& owner_;
    at::cuda::CUDAEvent event_;
  };

  void throw_if_gone() const {
    if (const std::string gone = distributed_.first_gone(); !gone.empty())
      throw std::runtime_error("nccl: " + gone);
  }

  /// Enqueues a collective on stream_, ordered after the work queued on the caller's stream.
  template <typename Call>
  std::unique_ptr<Work> enqueue(const std::vector<torch::Tensor>& tensors, const Call& call) {
    throw_if_gone();
    const c10::cuda::CUDAGuard guard(guard_device_);
    at::cuda::CUDAEvent ready, done;
    ready.record(c10::cuda::getCurrentCUDAStream(guard_device_.index()));
    ready.block(stream_);
    // Keeps the allocator from reusing the memory before this stream has finished with it.
    for (const torch::Tensor& tensor : tensors) {
      c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream_);
    }
    check(call(stream_.stream()));
    done.record(stream_);
    return std::make_unique<Ordered>(*this, std::move(done));
  }

  DistributedContext& distributed_;
  const torch::Device guard_device_;
  const c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> closing_ = false, ended_ = false;
  std::thread watcher_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(DistributedContext& distributed,
                                                     const torch::Device& device) {
  return std::make_unique<NcclCommunicator>(distributed, device);
}

}  // namespace det

#else

namespace det {

std::unique_ptr<Communicator> make_nccl_communicator(DistributedContext&, const torch::Device&) {
  throw std::runtime_error(
      "this libdet was built with a LibTorch without CUDA, or without nccl.h: there is no nccl; build it "
      "with LibTorch's "
      "CUDA package and the CUDA toolkit");
}

}  // namespace det

#endif
