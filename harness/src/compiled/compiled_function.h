// A function that torch.export and AOTInductor compiled, in a package (.pt2). Training thread.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

namespace det {

/// True when this build can run compiled functions: LibTorch 2.6 and later.
bool can_run_compiled_functions();

/// One function of a package. Runs without Python.
class CompiledFunction {
 public:
  /// Loads the function, which executes code of the package. Throws std::invalid_argument when the package
  /// does not have it, or can_run_compiled_functions() is false.
  CompiledFunction(const std::string& package, const std::string& name);
  ~CompiledFunction();
  CompiledFunction(CompiledFunction&& other) noexcept;

  /// Returns the outputs in the order of the export. The inputs must be contiguous, of the exported types,
  /// shapes and device: compiled code does not check them. Throws c10::Error of the function.
  std::vector<torch::Tensor> operator()(std::vector<torch::Tensor> inputs) const;

 private:
  struct Loader;
  std::unique_ptr<Loader> loader_;
};

}  // namespace det
