#include "harness/src/compiled/compiled_function.h"

#include <stdexcept>

#include "harness/src/base/torch_compat.h"
#if DET_HAS_AOT_INDUCTOR
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#endif

namespace det {

#if DET_HAS_AOT_INDUCTOR

struct CompiledFunction::Loader {
  torch::inductor::AOTIModelPackageLoader loader;
};

bool can_run_compiled_functions() { return true; }

CompiledFunction::CompiledFunction(const std::string& package, const std::string& name) {
  try {
    loader_.reset(new Loader{torch::inductor::AOTIModelPackageLoader(package, name)});
  } catch (const std::exception& error) {
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    throw std::invalid_argument(package + ": the function \"" + name + "\" cannot be loaded: " +
                                (of_torch != nullptr ? of_torch->what_without_backtrace() : error.what()));
  }
}

std::vector<torch::Tensor> CompiledFunction::operator()(std::vector<torch::Tensor> inputs) const {
  return loader_->loader.run(inputs);
}

#else

struct CompiledFunction::Loader {};

bool can_run_compiled_functions() { return false; }

CompiledFunction::CompiledFunction(const std::string& package, const std::string&) {
  throw std::invalid_argument(package +
                              ": compiled steps need LibTorch 2.6 or newer (Debian 13); this program has " +
                              compat::torch_version());
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): declared for LibTorch 2.6, which moves the inputs.
std::vector<torch::Tensor> CompiledFunction::operator()(std::vector<torch::Tensor>) const {
  throw std::logic_error("not reached: the constructor throws");
}

#endif

CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&& other) noexcept = default;

}  // namespace det
