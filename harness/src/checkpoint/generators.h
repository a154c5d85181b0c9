// The default random number generators of the CPU and of a device.
#pragma once

#include <torch/types.h>

#include <utility>
#include <vector>

namespace det {

/// The state of the default generator of `device`, as a tensor on the CPU.
torch::Tensor generator_state(const torch::Device& device);
/// Sets the default generator of `device` to a copy of `state`.
void set_generator_state(const torch::Device& device, const torch::Tensor& state);

/// Copies of the states of the generators of the CPU and of a device.
class GeneratorStates {
 public:
  explicit GeneratorStates(const torch::Device& device);
  /// Sets the generators to the copies.
  void restore() const;

 private:
  std::vector<std::pair<torch::Device, torch::Tensor>> states_;
};

/// Restores the generators at the end of a scope, so that training does not depend on what is drawn there.
class GeneratorGuard {
 public:
  explicit GeneratorGuard(const torch::Device& device) : before_(device) {}
  ~GeneratorGuard() { before_.restore(); }
  GeneratorGuard(const GeneratorGuard&) = delete;

 private:
  GeneratorStates before_;
};

}  // namespace det
