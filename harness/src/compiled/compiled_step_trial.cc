#include "harness/src/compiled/compiled_step_trial.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/json.h"
#include "common/base/text.h"
#include "harness/src/checkpoint/safetensors.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

constexpr char kGlobalBatchSize[] = "global_batch_size";

/// A tree of modules whose parameters are the state: a dot in a name separates modules. The parameters do not
/// require gradients.
std::shared_ptr<torch::nn::Module> module_of(const std::vector<TensorSpec>& specs, const Tensors& values) {
  auto root = std::make_shared<torch::nn::Module>("CompiledStep");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    std::vector<std::string> parts = split(specs[i].name, '.');
    const std::string leaf = parts.back();
    parts.pop_back();
    std::shared_ptr<torch::nn::Module> at = root;
    for (const std::string& part : parts) {
      const auto children = at->named_children();
      const auto* known = children.find(part);
      at = known != nullptr ? *known : at->register_module(part, std::make_shared<torch::nn::Module>(part));
    }
    at->register_parameter(leaf, values[i], /*requires_grad=*/false);
  }
  return root;
}

/// Checks configuration and data against the manifest, and collects all problems.
class StepSetup {
 public:
  StepSetup(TrialContext& context, const StepManifest& manifest, std::string folder)
      : context_(context), manifest_(manifest), folder_(std::move(folder)) {}

  void check_settings() {
    const GradientPipeline& gradients = context_.state().gradients;
    const auto unsupported = [&](const char* path) {
      problem(path, "has no effect on a compiled step; remove it, or export a step that does it");
    };
    if (gradients.aggregation.frequency != 1) unsupported("optimizations.aggregation_frequency");
    if (gradients.amp) unsupported("optimizations.precision");
    if (gradients.zero) unsupported("optimizations.zero");
    if (gradients.cuda_graph) unsupported("optimizations.cuda_graph");
    if (gradients.exact) unsupported("reproducibility");
    check_batch_size();
  }

  /// Returns the hyperparameters as inputs of `update`.
  Tensors hyperparameters() {
    const Json& given = context_.get_hparams();
    std::vector<std::string> known = manifest_.hyperparameters;
    known.push_back(kGlobalBatchSize);
    for (const auto& [name, value] : given.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        problem("hyperparameters." + name, "the compiled step has no such input; its inputs are: " +
                                               join(manifest_.hyperparameters, ", ") +
                                               did_you_mean(name, known));
    }
    Tensors tensors;
    for (const std::string& name : manifest_.hyperparameters) {
      const auto found = given.find(name);
      const auto number = found == given.end() ? std::nullopt : read_double(*found);
      if (!number)
        problem("hyperparameters." + name, "must be a number: it is an input of the compiled step");
      tensors.push_back(
          at::full({}, number.value_or(0), torch::dtype(torch::kFloat).device(context_.device())));
    }
    return tensors;
  }

  /// Reads the file that `data.<key>` names. `divides`: the records must be whole batches.
  std::shared_ptr<const TensorDataset> dataset(const std::string& key, const std::vector<TensorSpec>& batch,
                                               bool divides) {
    const std::string path = "data." + key;
    const Json& data = context_.get_data_config();
    const auto name = data.find(key);
    if (name == data.end() || !name->is_string()) {
      problem(path, "must name a safetensors file with the tensors " + join(names_of(batch), ", "));
      return nullptr;
    }
    const std::size_t before = problems_.size();
    const std::string file = (std::filesystem::path(folder_) / name->get<std::string>()).string();
    pickle::Dict content;
    try {
      content = safetensors::load(file);
    } catch (const std::exception& error) {
      problem(path, error.what());
      return nullptr;
    }
    const Tensors tensors = records(path, content, batch);
    if (problems_.size() > before) return nullptr;
    const std::int64_t count = tensors[0].size(0), size = batch[0].shape[0];
    if (count < size || (divides && count % size != 0)) {
      problem(path, "has " + std::to_string(count) + " records, the compiled function takes batches of " +
                        std::to_string(size) + (divides ? "; it must be a multiple" : ""));
      return nullptr;
    }
    return std::make_shared<const TensorDataset>(tensors);
  }

  void check_data_keys() {
    for (const auto& [key, value] : context_.get_data_config().items()) {
      if (key != "training" && key != "validation")
        problem("data." + key, "unknown key; a compiled step has data.training and data.validation" +
                                   did_you_mean(key, {"training", "validation"}));
    }
  }
  /// Throws std::invalid_argument if there are problems.
  void finish() {
    if (!problems_.empty()) throw std::invalid_argument(fail(std::move(problems_)).value().message);
  }

 private:
  void problem(std::string path, std::string message) {
    problems_.push_back(
        {.code = "E-STEP-CONFIG", .path = std::move(path), .message = std::move(message), .file = ""});
  }

  void check_batch_size() {
    const std::string path = std::string("hyperparameters.") + kGlobalBatchSize;
    const std::int64_t ranks = context_.distributed().size(), wanted = manifest_.batch_size() * ranks;
    const Json& given = context_.get_hparams();
    const auto found = given.find(kGlobalBatchSize);
    const auto number = found == given.end() ? std::nullopt : read_double(*found);
    if (number && *number == static_cast<double>(wanted)) return;
    problem(path, "must be " + std::to_string(wanted) + ": the step was compiled for batches of " +
                      std::to_string(manifest_.batch_size()) +
                      (ranks > 1 ? " on each of " + std::to_string(ranks) + " processes" : ""));
  }

  /// The tensors of a batch, with all records.
  Tensors records(const std::string& path, const pickle::Dict& content,
                  const std::vector<TensorSpec>& batch) {
    Tensors tensors;
    for (const TensorSpec& spec : batch) {
      const pickle::Value* value = content.find(spec.name);
      if (value == nullptr) {
        problem(path, "the file has no tensor " + spec.name);
        continue;
      }
      const torch::Tensor& tensor = pickle::expect<torch::Tensor>(*value, spec.name);
      std::vector<std::int64_t> shape = spec.shape;
      if (tensor.dim() > 0) shape[0] = tensor.size(0);
      if (tensor.scalar_type() != spec.dtype || tensor.sizes() != shape)
        problem(path, spec.name + " is " + describe(tensor.scalar_type(), tensor.sizes().vec()) +
                          ", the compiled function takes batches of " + describe(spec.dtype, spec.shape));
      else if (!tensors.empty() && tensors[0].size(0) != tensor.size(0))
        problem(path, spec.name + " and " + batch[0].name + " have different numbers of records");
      tensors.push_back(tensor);
    }
    const std::vector<std::string> names = names_of(batch);
    for (const auto& [name, value] : content.items) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      problem(path, "the file has tensors that are no input of the compiled step, such as " + name);
      break;
    }
    return tensors;
  }

  TrialContext& context_;
  const StepManifest& manifest_;
  const std::string folder_;
  std::vector<Problem> problems_;
};

/// The tensors of a batch, in the order of the manifest.
Tensors tensors_of(const Batch& batch) {
  if (batch.is_tensor()) return {batch.tensor()};
  Tensors tensors;
  for (const Batch& item : batch.list()) tensors.push_back(item.tensor());
  return tensors;
}

Metrics metrics_of(const std::vector<std::string>& names, const Tensors& values) {
  Metrics metrics;
  for (std::size_t i = 0; i < names.size(); ++i) metrics.add(names[i], values[i]);
  return metrics;
}

/// Reads the files of a package. LibTorch's version is checked first: the files matter only then.
StepFiles files_of(const std::string& package) {
  if (!can_run_compiled_functions()) (void)CompiledFunction(package, "gradients");  // throws
  return read_step_files(package);
}

}  // namespace

CompiledStepTrial::CompiledStepTrial(TrialContext& context, const std::string& package)
    : CompiledStepTrial(context, package, files_of(package)) {}

CompiledStepTrial::CompiledStepTrial(TrialContext& context, const std::string& package,
                                     const StepFiles& files)
    : context_(context), manifest_(files.manifest), step_(package, manifest_, context.device()) {
  StepSetup setup(context, manifest_, std::filesystem::absolute(package).parent_path().string());
  setup.check_settings();
  hyperparameters_ = setup.hyperparameters();
  setup.check_data_keys();
  training_ = setup.dataset("training", manifest_.batch, /*divides=*/false);
  validation_ = setup.dataset("validation", manifest_.evaluation_batch, /*divides=*/true);
  setup.finish();
  check_recorded_step(package, step_, files, context.device());

  const auto model = context.wrap_model(module_of(manifest_.state, files.initial));
  const auto parameters = model->named_parameters();
  for (const TensorSpec& spec : manifest_.state) state_.push_back(parameters[spec.name]);
  context.state().steps_itself = true;
}

DataLoader CompiledStepTrial::build_training_data_loader() {
  return {training_, {.batch_size = manifest_.batch_size(), .shuffle = true, .drop_last = true}};
}

DataLoader CompiledStepTrial::build_validation_data_loader() {
  return {validation_, {.batch_size = manifest_.evaluation_batch_size()}};
}

Metrics CompiledStepTrial::train_batch(Batch& batch, int64_t, int64_t) {
  const at::NoGradGuard no_grad;
  GradientResult result = step_.gradients(state_, tensors_of(batch));
  if (Communicator* communicator = context_.state().run.communicator.get(); communicator != nullptr) {
    std::vector<std::unique_ptr<Work>> exchanges;
    for (const torch::Tensor& gradient : result.gradients)
      exchanges.push_back(communicator->all_reduce(gradient, Reduction::kMean));
    for (const auto& exchange : exchanges) exchange->wait();
  }
  Tensors next = step_.update(state_, result.gradients, hyperparameters_);
  // The parameters take over the new tensors without a copy.
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i].set_data(next[i]);
  return metrics_of(manifest_.metrics, result.metrics);
}

Metrics CompiledStepTrial::evaluate_batch(Batch& batch) {
  return metrics_of(manifest_.evaluation_metrics, step_.evaluate(state_, tensors_of(batch)));
}

}  // namespace det
