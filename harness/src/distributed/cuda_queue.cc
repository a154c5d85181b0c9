// A CUDA stream as SideQueue. c10's stream interface exists in every LibTorch; only the handle of a stream
// needs a LibTorch built for CUDA.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>

#include "harness/src/base/cuda_build.h"
#include "harness/src/distributed/side_queue.h"

#if DET_HAS_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

namespace det {

#if DET_HAS_CUDA
namespace {

class CudaQueue final : public SideQueue {
 public:
  explicit CudaQueue(const torch::Device& device)
      : streams_(device.type()),
        device_(device),
        side_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {}

  void* handle() const override { return side_.stream(); }

  void enter(const std::vector<torch::Tensor>& tensors) override {
    c10::Event ready(device_.type());
    ready.record(streams_.getStream(device_));
    ready.block(side_.unwrap());
    for (const torch::Tensor& tensor : tensors) tensor.record_stream(side_.unwrap());
  }

  std::unique_ptr<Mark> mark() override {
    c10::Event done(device_.type());
    done.record(side_.unwrap());
    return std::make_unique<CudaMark>(*this, std::move(done));
  }

 private:
  class CudaMark final : public Mark {
   public:
    CudaMark(CudaQueue& queue, c10::Event event) : queue_(queue), event_(std::move(event)) {}
    void block() override { event_.block(queue_.streams_.getStream(queue_.device_)); }
    bool done() const override { return event_.query(); }

   private:
    CudaQueue& queue_;
    c10::Event event_;
  };

  const c10::impl::VirtualGuardImpl streams_;
  const torch::Device device_;
  const c10::cuda::CUDAStream side_;
};

}  // namespace

bool built_with_cuda() { return true; }

std::unique_ptr<SideQueue> make_cuda_queue(const torch::Device& device) {
  return std::make_unique<CudaQueue>(device);
}

#else

bool built_with_cuda() { return false; }

std::unique_ptr<SideQueue> make_cuda_queue(const torch::Device&) {
  throw std::runtime_error(
      "this libdet was built with a LibTorch without CUDA; on Debian 13 run deploy/deps.sh --cuda, then "
      "build "
      "again");
}

#endif

}  // namespace det
