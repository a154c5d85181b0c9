#include "harness/src/compiled/step_package.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <stdexcept>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "harness/src/checkpoint/safetensors.h"

namespace det {
namespace {

constexpr std::int64_t kMaxStepManifest = 16 << 20;  ///< bytes
/// Accepted error, relative to the change that the recorded step makes (in the 2-norm of a tensor).
constexpr double kStepTolerance = 1e-3;
constexpr std::size_t kMaxNamed = 10;  ///< tensors that an error names

/// NAME.pt2 → NAME<extension>.
std::string beside(const std::string& package, const char* extension) {
  return std::filesystem::path(package).replace_extension(extension).string();
}

[[noreturn]] void refuse(std::vector<Problem> problems) {
  throw std::invalid_argument(fail(std::move(problems)).value().message);
}

/// The specs of hyperparameters and metrics.
std::vector<TensorSpec> scalars(const std::vector<std::string>& names) {
  std::vector<TensorSpec> specs;
  for (const std::string& name : names) specs.push_back({.name = name, .dtype = torch::kFloat, .shape = {}});
  return specs;
}

/// Takes tensors out of NAME.safetensors, where their names are "<group>/<name>".
class TensorFile {
 public:
  explicit TensorFile(const std::string& path) : path_(path) {
    try {
      for (auto& [name, value] : safetensors::load(path).items)
        tensors_.emplace(name, pickle::expect<torch::Tensor>(value, name));
    } catch (const std::runtime_error& error) {
      throw std::invalid_argument(error.what());
    }
  }

  Tensors take(const std::string& group, const std::vector<TensorSpec>& specs) {
    Tensors taken;
    for (const TensorSpec& spec : specs) {
      const std::string name = group + "/" + spec.name;
      const auto found = tensors_.find(name);
      if (found == tensors_.end()) {
        problem("E-STEP-MISSING", name, "is missing");
        continue;
      }
      const torch::Tensor tensor = found->second;
      tensors_.erase(found);
      if (tensor.scalar_type() != spec.dtype || tensor.sizes() != spec.shape)
        problem("E-STEP-VALUE", name,
                "is " + describe(tensor.scalar_type(), tensor.sizes().vec()) + ", the manifest says " +
                    describe(spec.dtype, spec.shape));
      taken.push_back(tensor);
    }
    return taken;
  }
  /// Throws the problems. What was not taken is unknown.
  void finish() {
    for (const auto& [name, tensor] : tensors_) problem("E-STEP-UNKNOWN", name, "unknown tensor");
    if (!problems_.empty()) refuse(std::move(problems_));
  }

 private:
  void problem(std::string code, std::string name, std::string message) {
    problems_.push_back(
        {.code = std::move(code), .path = std::move(name), .message = std::move(message), .file = path_});
  }
  std::string path_;
  std::map<std::string, torch::Tensor> tensors_;
  std::vector<Problem> problems_;
};

void expect_outputs(const char* function, std::size_t got, std::size_t expected) {
  if (got == expected) return;
  throw std::invalid_argument(std::string("the compiled function \"") + function + "\" returned " +
                              std::to_string(got) + " tensors, the manifest says " +
                              std::to_string(expected));
}

Tensors joined(const Tensors& a, const Tensors& b) {
  Tensors all(a);
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

Tensors moved(const Tensors& tensors, const torch::Device& device) {
  Tensors result;
  for (const torch::Tensor& tensor : tensors) result.push_back(tensor.to(device));
  return result;
}

double norm_of(const torch::Tensor& tensor) { return tensor.to(torch::kDouble).norm().item<double>(); }

/// Rounding error of one operation, relative.
double epsilon_of(torch::ScalarType type) {
  switch (type) {
    case torch::kDouble:
      return std::numeric_limits<double>::epsilon();
    case torch::kHalf:
      return 1.0 / 1024;
    case torch::kBFloat16:
      return 1.0 / 128;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

/// Compares the results of a replay with the recorded ones.
class Comparison {
 public:
  /// Adds a result. `before`: the value before the step, undefined for a result that is no state.
  void add(const std::string& name, const torch::Tensor& result, const torch::Tensor& before,
           const torch::Tensor& expected) {
    if (result.scalar_type() != expected.scalar_type() || result.sizes() != expected.sizes()) {
      return differ(name, "is " + describe(result.scalar_type(), result.sizes().vec()) + ", not " +
                              describe(expected.scalar_type(), expected.sizes().vec()));
    }
    const torch::Tensor got = result.to(torch::kCPU);
    if (!got.is_floating_point()) {
      if (!got.equal(expected)) differ(name, "differs");
      return;
    }
    // A small step leaves a parameter nearly unchanged: the error is compared with the change.
    const torch::Tensor exact = expected.to(torch::kDouble);
    const double change = norm_of(before.defined() ? exact - before.to(torch::kDouble) : exact);
    const double error = norm_of(got.to(torch::kDouble) - exact);
    const double accepted = kStepTolerance * change + 4 * epsilon_of(got.scalar_type()) * norm_of(exact);
    // NaN differs from everything.
    if (!(error <= accepted))
      differ(name, "has an error of " + number(error) + " in a change of " + number(change));
  }
  /// Throws std::invalid_argument when a result differs.
  void finish(const std::string& package) const {
    if (differences_.empty()) return;
    std::vector<std::string> named(
        differences_.begin(),
        differences_.begin() + static_cast<std::ptrdiff_t>(std::min(kMaxNamed, differences_.size())));
    if (differences_.size() > kMaxNamed)
      named.push_back(std::to_string(differences_.size() - kMaxNamed) + " more");
    throw std::invalid_argument(
        package + " does not compute the step that was recorded when it was exported: " + join(named, "; ") +
        "; export it again");
  }

 private:
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  void differ(const std::string& name, const std::string& how) { differences_.push_back(name + " " + how); }
  std::vector<std::string> differences_;
};

/// Adds the results of the recorded step to `comparison`.
void replay(const std::string& package, const CompiledStep& step, const StepFiles& files,
            const torch::Device& device, Comparison& comparison) {
  const at::NoGradGuard no_grad;
  const StepManifest& manifest = files.manifest;
  const RecordedStep& recorded = files.recorded;
  const Tensors before = moved(recorded.before, device);
  const GradientResult result = step.gradients(before, moved(recorded.batch, device));
  for (std::size_t i = 0; i < manifest.gradients.size(); ++i) {
    const TensorSpec& spec = manifest.gradients[i];
    const torch::Tensor& gradient = result.gradients[i];
    if (gradient.scalar_type() != spec.dtype || gradient.sizes() != spec.shape)
      throw std::invalid_argument(package + ": the gradient " + spec.name + " is " +
                                  describe(gradient.scalar_type(), gradient.sizes().vec()) +
                                  ", the manifest says " + describe(spec.dtype, spec.shape));
  }
  const Tensors after = step.update(before, result.gradients, moved(recorded.hyperparameters, device));
  for (std::size_t i = 0; i < manifest.metrics.size(); ++i)
    comparison.add("metrics/" + manifest.metrics[i], result.metrics[i], {}, recorded.metrics[i]);
  for (std::size_t i = 0; i < manifest.state.size(); ++i)
    comparison.add("state/" + manifest.state[i].name, after[i], recorded.before[i], recorded.after[i]);
  const Tensors metrics =
      step.evaluate(moved(recorded.after, device), moved(recorded.evaluation_batch, device));
  for (std::size_t i = 0; i < manifest.evaluation_metrics.size(); ++i)
    comparison.add("evaluation.metrics/" + manifest.evaluation_metrics[i], metrics[i], {},
                   recorded.evaluation_metrics[i]);
}

}  // namespace

StepFiles read_step_files(const std::string& package) {
  const std::string manifest_file = beside(package, ".json"), tensor_file = beside(package, ".safetensors");
  std::vector<std::string> missing;
  for (const std::string& path : {package, manifest_file, tensor_file}) {
    if (!path_exists(path)) missing.push_back(path);
  }
  if (!missing.empty())
    throw std::invalid_argument("a compiled step consists of three files, of which these are missing: " +
                                join(missing, ", "));
  const auto text = read_file(manifest_file, kMaxStepManifest);
  if (!text) throw std::invalid_argument(text.error().message);
  auto manifest = parse_step_manifest(*text, manifest_file);
  if (!manifest) throw std::invalid_argument(manifest.error().message);

  const auto digest = sha256_file(package);
  if (!digest || *digest != manifest->package_sha256)
    throw std::invalid_argument(package + " is not the file that " + manifest_file +
                                " describes; export the compiled step again");

  StepFiles files{.manifest = std::move(*manifest), .initial = {}, .recorded = {}};
  const StepManifest& signature = files.manifest;
  TensorFile tensors(tensor_file);
  files.initial = tensors.take("initial", signature.state);
  RecordedStep& recorded = files.recorded;
  recorded.before = tensors.take("before", signature.state);
  recorded.after = tensors.take("after", signature.state);
  recorded.batch = tensors.take("batch", signature.batch);
  recorded.hyperparameters = tensors.take("hyperparameters", scalars(signature.hyperparameters));
  recorded.metrics = tensors.take("metrics", scalars(signature.metrics));
  recorded.evaluation_batch = tensors.take("evaluation.batch", signature.evaluation_batch);
  recorded.evaluation_metrics = tensors.take("evaluation.metrics", scalars(signature.evaluation_metrics));
  tensors.finish();
  return files;
}

CompiledStep::CompiledStep(const std::string& package, const StepManifest& manifest,
                           const torch::Device& device)
    : states_(manifest.state.size()),
      gradients_count_(manifest.gradients.size()),
      metrics_(manifest.metrics.size()),
      evaluation_metrics_(manifest.evaluation_metrics.size()),
      gradients_(package, "gradients"),
      update_(package, "update"),
      evaluate_(package, "evaluate") {
  if (device.type() == manifest.device) return;
  throw std::invalid_argument(package + " was compiled for " + c10::DeviceTypeName(manifest.device, true) +
                              ", but this process trains on " + device.str() + "; export it for this device");
}

GradientResult CompiledStep::gradients(const Tensors& state, const Tensors& batch) const {
  Tensors outputs = gradients_(joined(state, batch));
  expect_outputs("gradients", outputs.size(), gradients_count_ + metrics_);
  GradientResult result;
  const auto metrics_begin = outputs.begin() + static_cast<std::ptrdiff_t>(gradients_count_);
  // The compiled update reads contiguous memory.
  for (auto at = outputs.begin(); at != metrics_begin; ++at) result.gradients.push_back(at->contiguous());
  result.metrics.assign(metrics_begin, outputs.end());
  return result;
}

Tensors CompiledStep::update(const Tensors& state, const Tensors& gradients,
                             const Tensors& hyperparameters) const {
  Tensors outputs = update_(joined(joined(state, gradients), hyperparameters));
  expect_outputs("update", outputs.size(), states_);
  for (torch::Tensor& tensor : outputs) tensor = tensor.contiguous();
  return outputs;
}

Tensors CompiledStep::evaluate(const Tensors& state, const Tensors& batch) const {
  Tensors outputs = evaluate_(joined(state, batch));
  expect_outputs("evaluate", outputs.size(), evaluation_metrics_);
  return outputs;
}

void check_recorded_step(const std::string& package, const CompiledStep& step, const StepFiles& files,
                         const torch::Device& device) {
  try {
    Comparison comparison;
    replay(package, step, files, device, comparison);
    comparison.finish(package);
  } catch (const c10::Error& error) {
    throw std::invalid_argument(package + ": the recorded step fails: " + error.what_without_backtrace());
  }
}

}  // namespace det
