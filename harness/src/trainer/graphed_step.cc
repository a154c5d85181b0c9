#include "harness/src/trainer/graphed_step.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "harness/src/checkpoint/generators.h"
#include "harness/src/optim/device_step.h"

namespace det {
namespace {

/// Accepted error of a repetition, relative to the change that the step makes (in the 2-norm of a tensor).
constexpr double kTolerance = 1e-3;

std::vector<torch::Tensor> tensors_of(const Batch& batch) {
  std::vector<torch::Tensor> tensors;
  (void)batch.map([&](const torch::Tensor& tensor) {
    tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

bool alike(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

/// The name of a metric that is a number of the CPU, or "".
std::string plain_metric(const Metrics& metrics) {
  for (const auto& [name, value] : metrics.entries()) {
    if (value.tensor() == nullptr || !value.tensor()->defined()) return name;
  }
  return "";
}

/// The gradients of all models. Recorded kernels leave gradients without values.
class Gradients {
 public:
  explicit Gradients(const ContextState& state) {
    for (const auto& model : state.wrapped.models) {
      for (const torch::Tensor& parameter : model->parameters())
        kept_.emplace_back(parameter, parameter.grad());
    }
  }
  void restore() {
    for (auto& [parameter, gradient] : kept_) parameter.mutable_grad() = gradient;
  }

 private:
  std::vector<std::pair<torch::Tensor, torch::Tensor>> kept_;
};

double norm_of(const torch::Tensor& tensor) { return tensor.to(torch::kDouble).norm().item<double>(); }

}  // namespace

std::string graph_problem(const ContextState& state) {
  const GradientPipeline& gradients = state.gradients;
  if (state.run.communicator != nullptr) return "several processes train the trial";
  if (gradients.exact) return "reproducibility: exact trains each batch in parts";
  if (gradients.aggregation.frequency > 1) return "aggregation_frequency is greater than 1";
  if (state.wrapped.scaler != nullptr) return "the loss scaler decides on the CPU whether to step";
  if (state.steps_itself) return "the step is compiled";
  if (state.metric_reducers.has(MetricReducers::Kind::kTraining))
    return "a metric reducer takes values of each batch on the CPU";
  for (const WrappedScheduler& wrapped : state.wrapped.lr_schedulers) {
    if (wrapped.mode == LRStepMode::kManual) return "train_batch may step a learning-rate schedule";
  }
  if (state.wrapped.optimizers.empty()) return "the trial has no optimizer";
  for (const auto& optimizer : state.wrapped.optimizers) {
    std::string problem = DeviceStep(*optimizer).problem();
    if (!problem.empty()) return problem;
  }
  return "";
}

void report_no_graph(const std::string& reason) {
  std::printf("note: optimizations.cuda_graph has no effect: %s\n", reason.c_str());
}

GraphedStep::GraphedStep(ContextState& state, std::unique_ptr<GraphRecorder> recorder)
    : state_(state), recorder_(std::move(recorder)) {
  for (std::size_t i = 0; i < state_.wrapped.optimizers.size(); ++i)
    state_.gradients.stepping[i].on_device = std::make_unique<DeviceStep>(*state_.wrapped.optimizers[i]);
  GraphMode::current = &mode_;
}

GraphedStep::~GraphedStep() {
  GraphMode::current = nullptr;
  for (Stepping& stepping : state_.gradients.stepping) stepping.on_device.reset();
}

Metrics GraphedStep::train(Batch& batch, const Train& train) {
  switch (stage_) {
    case Stage::kWarmUp: {
      Metrics metrics = usual(batch, train);
      const std::vector<torch::Tensor> tensors = tensors_of(batch);
      const bool on_device = std::all_of(tensors.begin(), tensors.end(), [&](const torch::Tensor& tensor) {
        return tensor.device() == state_.run.device;
      });
      if (const std::string name = plain_metric(metrics); !name.empty()) {
        abandon("the metric " + name + " is a number of the CPU; return it as a tensor");
      } else if (!on_device) {
        abandon("a tensor of the batch is not on " + state_.run.device.str());
      } else if (++tried_ > kMaxWarmUp) {
        abandon(std::to_string(kWarmUp) + " batches of one shape in turn did not come");
      } else if (seen_ = fits(batch) ? seen_ + 1 : 1; seen_ == kWarmUp) {
        record(batch, train);
      } else {
        inputs_ = batch;
      }
      return metrics;
    }
    case Stage::kRecorded:
    case Stage::kTrusted:
      if (!matches_recording()) {
        abandon("an option of an optimizer other than its learning rate has changed");
        break;
      }
      if (const std::string name = moved_tensor(); !name.empty()) {
        abandon(name +
                " has other memory than in the recording; write to it with copy_() instead of set_data()");
        break;
      }
      if (!fits(batch)) return usual(batch, train);
      return stage_ == Stage::kTrusted ? repeat(batch) : compare(batch, train);
    case Stage::kOff:
      break;
  }
  return train(batch);
}

bool GraphedStep::matches_recording() const {
  return std::all_of(state_.gradients.stepping.begin(), state_.gradients.stepping.end(),
                     [](const Stepping& stepping) { return stepping.on_device->matches_recording(); });
}

std::string GraphedStep::moved_tensor() const {
  const auto moved = std::find_if(memory_.begin(), memory_.end(), [](const Memory& memory) {
    return memory.tensor.data_ptr() != memory.address;
  });
  return moved == memory_.end() ? "" : moved->name;
}

bool GraphedStep::fits(const Batch& batch) const {
  const std::vector<torch::Tensor> expected = tensors_of(inputs_), given = tensors_of(batch);
  return std::equal(expected.begin(), expected.end(), given.begin(), given.end(), alike);
}

Metrics GraphedStep::usual(Batch& batch, const Train& train) {
  Metrics metrics;
  recorder_->execute([&] { metrics = train(batch); });
  return metrics;
}

void GraphedStep::record(const Batch& batch, const Train& train) {
  inputs_ = batch.map([](const torch::Tensor& tensor) { return tensor.detach().clone(); });
  std::string reason;
  Gradients gradients(state_);
  // The recorded call of train_batch trains nothing: the random numbers that it draws on the CPU belong to
  // the next batch.
  const GeneratorStates random(state_.run.device);
  mode_.recording = true;
  try {
    // Kept by the recorder, which may call it again.
    recorder_->record([this, train] {
      Batch own = inputs_;
      outputs_ = train(own);
    });
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
    reason = reason.substr(0, reason.find('\n')) + " (train_batch must not read values of the GPU)";
  } catch (const std::exception& error) {
    reason = error.what();
  }
  mode_.recording = false;
  gradients.restore();
  random.restore();
  if (!reason.empty()) return abandon(reason);
  for (const auto& [name, tensor] : changed_tensors()) memory_.push_back({name, tensor, tensor.data_ptr()});
  stage_ = Stage::kRecorded;
}

Metrics GraphedStep::repeat(const Batch& batch) {
  const std::vector<torch::Tensor> inputs = tensors_of(inputs_), given = tensors_of(batch);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i].detach().copy_(given[i].detach(), /*non_blocking=*/true);
  for (Stepping& stepping : state_.gradients.stepping) stepping.on_device->count_repetition();
  recorder_->replay();
  // The next repetition writes to the same tensors.
  Metrics metrics;
  for (const auto& [name, value] : outputs_.entries()) metrics.add(name, value.tensor()->detach().clone());
  return metrics;
}

/// Trains a batch as usual, after the recorded kernels have done the same to copies.
Metrics GraphedStep::compare(Batch& batch, const Train& train) {
  const auto tensors = changed_tensors();
  const GeneratorStates random(state_.run.device);
  std::vector<torch::Tensor> before, repeated;
  for (const auto& [name, tensor] : tensors) before.push_back(tensor.detach().clone());
  (void)repeat(batch);
  for (const auto& [name, tensor] : tensors) repeated.push_back(tensor.detach().clone());
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].second.detach().copy_(before[i]);
  }
  for (Stepping& stepping : state_.gradients.stepping) stepping.on_device->uncount_repetition();
  random.restore();

  Metrics metrics = usual(batch, train);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    const double change = norm_of(tensor.detach() - before[i]), size = norm_of(tensor.detach());
    if (!std::isfinite(change)) return metrics;  // says nothing; the next batch is compared
    if (norm_of(repeated[i] - tensor.detach()) <= kTolerance * change + 1e-6 * size) continue;
    abandon("a repeated step changed " + name +
            " unlike a usual one; train_batch must do the same for each batch, and keep no state of its own");
    return metrics;
  }
  stage_ = Stage::kTrusted;
  std::printf("training steps are repeated as one CUDA graph\n");
  return metrics;
}

/// Parameters, buffers and the state of optimizers, with names for messages.
std::vector<std::pair<std::string, torch::Tensor>> GraphedStep::changed_tensors() const {
  std::vector<std::pair<std::string, torch::Tensor>> all;
  for (const auto& model : state_.wrapped.models) {
    for (const auto& item : model->named_parameters()) all.emplace_back(item.key(), item.value());
    for (const auto& item : model->named_buffers()) all.emplace_back(item.key(), item.value());
  }
  for (const Stepping& stepping : state_.gradients.stepping) {
    for (const torch::Tensor& tensor : stepping.on_device->state_tensors())
      all.emplace_back("the state of an optimizer", tensor);
  }
  return all;
}

void GraphedStep::abandon(const std::string& reason) {
  reason_ = reason;
  stage_ = Stage::kOff;
  recorder_.reset();
  inputs_ = {};
  outputs_ = {};
  report_no_graph(reason);
}

}  // namespace det
