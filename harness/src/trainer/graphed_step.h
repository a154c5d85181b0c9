// Training steps that are recorded once and repeated as one CUDA graph (`optimizations.cuda_graph`).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "det/batch.h"
#include "det/metrics.h"
#include "harness/src/optim/graph_mode.h"
#include "harness/src/trainer/context_state.h"
#include "harness/src/trainer/graph_recorder.h"

namespace det {

/// Why the steps of this trial cannot be recorded, or "".
std::string graph_problem(const ContextState& state);

/// Prints that steps are not recorded, and why.
void report_no_graph(const std::string& reason);

/// Trains the first batches as usual, records one, and compares a repetition with a usual step before it
/// repeats the others. A batch of another shape is trained as usual. When something cannot be recorded, all
/// later batches are trained as usual, and one line says why. Results are those of usual steps: the
/// optimizers of both are DeviceSteps. Used on the training thread, by one object at a time.
class GraphedStep {
 public:
  /// Trains a batch as usual.
  using Train = std::function<Metrics(Batch&)>;
  /// Batches that are trained as usual before the recording: libraries choose kernels and allocate in them.
  static constexpr int kWarmUp = 3;
  /// Batches in which kWarmUp of one shape in turn must come.
  static constexpr int kMaxWarmUp = 100;

  /// `state` has no graph_problem(), and outlives this object.
  GraphedStep(ContextState& state, std::unique_ptr<GraphRecorder> recorder);
  ~GraphedStep();

  /// Trains a batch, by `train` or by repeating the recording of an earlier `train`. Exceptions of `train`
  /// pass through, except those that a recording causes.
  Metrics train(Batch& batch, const Train& train);
  bool repeats() const { return stage_ == Stage::kTrusted; }
  /// Why batches are not repeated; "" if they are or will be.
  const std::string& reason() const { return reason_; }

 private:
  enum class Stage { kWarmUp, kRecorded, kTrusted, kOff };

  /// A tensor that the recorded kernels change, and its memory in the recording.
  struct Memory {
    std::string name;
    torch::Tensor tensor;
    const void* address;
  };

  bool matches_recording() const;
  /// The name of a tensor that a callback has given other memory since the recording, or "".
  std::string moved_tensor() const;
  bool fits(const Batch& batch) const;
  Metrics usual(Batch& batch, const Train& train);
  void record(const Batch& batch, const Train& train);
  Metrics repeat(const Batch& batch);
  Metrics compare(Batch& batch, const Train& train);
  std::vector<std::pair<std::string, torch::Tensor>> changed_tensors() const;
  void abandon(const std::string& reason);

  ContextState& state_;
  std::unique_ptr<GraphRecorder> recorder_;
  GraphMode mode_;
  Stage stage_ = Stage::kWarmUp;
  int tried_ = 0;    ///< batches of the warm-up
  int seen_ = 0;     ///< the last ones of them with the shape of inputs_
  Batch inputs_;     ///< read by the recorded kernels
  Metrics outputs_;  ///< written by them
  std::vector<Memory> memory_;
  std::string reason_;
};

}  // namespace det
