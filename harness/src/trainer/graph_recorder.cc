#include "harness/src/trainer/graph_recorder.h"

#include "harness/src/base/cuda_build.h"

#if DET_HAS_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace det {

#if DET_HAS_CUDA
namespace {

class CudaGraphRecorder final : public GraphRecorder {
 public:
  explicit CudaGraphRecorder(const torch::Device& device)
      : streams_(device.type()),
        device_(device),
        side_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()).unwrap()) {}

  void execute(const std::function<void()>& work) override {
    const c10::Stream current = streams_.getStream(device_);
    follow(current, side_);
    {
      const c10::StreamGuard guard(side_);
      work();
    }
    follow(side_, current);
  }

  void record(const std::function<void()>& work) override {
    graph_.reset();
    execute([&] {
      auto graph = std::make_unique<at::cuda::CUDAGraph>();
      // Threads that load data may allocate while this one records.
      graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      try {
        work();
      } catch (...) {
        abandon(*graph);
        throw;
      }
      graph->capture_end();
      graph_ = std::move(graph);
    });
  }

  void replay() override { graph_->replay(); }

 private:
  /// `later` waits for what `earlier` has got.
  void follow(const c10::Stream& earlier, const c10::Stream& later) {
    c10::Event event(device_.type());
    event.record(earlier);
    event.block(later);
  }
  /// Ends a recording that failed. CUDA reports the failure once more.
  static void abandon(at::cuda::CUDAGraph& graph) {
    try {
      graph.capture_end();
    } catch (const std::exception&) {
      (void)cudaGetLastError();
    }
  }

  const c10::impl::VirtualGuardImpl streams_;
  const torch::Device device_;
  const c10::Stream side_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace

std::unique_ptr<GraphRecorder> make_graph_recorder(const torch::Device& device) {
  return device.is_cuda() ? std::make_unique<CudaGraphRecorder>(device) : nullptr;
}

#else

std::unique_ptr<GraphRecorder> make_graph_recorder(const torch::Device&) { return nullptr; }

#endif

}  // namespace det
