// Recording of a device's kernels, to start all of them at once.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>

namespace det {

/// Records the kernels of a function on one device. Used on the training thread.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  /// Runs `work` as usual, on the stream that record() uses: memory and library handles of a first run belong
  /// to a stream.
  virtual void execute(const std::function<void()>& work) = 0;
  /// Runs `work` while its kernels are recorded instead of executed. Tensors that it makes have no values
  /// until replay(), and must be kept as long as this object. Replaces an earlier recording. Throws what
  /// `work` throws, and c10::Error for what the device cannot record; the earlier recording is lost then.
  virtual void record(const std::function<void()>& work) = 0;
  /// Starts the recorded kernels on the current stream. Does not wait for them.
  virtual void replay() = 0;
};

/// CUDA graphs (CUDA C++ Programming Guide, section CUDA Graphs). Null for the CPU, and in a build without
/// CUDA.
std::unique_ptr<GraphRecorder> make_graph_recorder(const torch::Device& device);

}  // namespace det
