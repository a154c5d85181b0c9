#include "harness/src/checkpoint/generators.h"

#include <ATen/Context.h>

#include <mutex>

namespace det {

torch::Tensor generator_state(const torch::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const torch::Device& device, const torch::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state.clone());
}

GeneratorStates::GeneratorStates(const torch::Device& device) {
  states_.emplace_back(torch::kCPU, generator_state(torch::kCPU));
  if (!device.is_cpu()) states_.emplace_back(device, generator_state(device));
}

void GeneratorStates::restore() const {
  for (const auto& [device, state] : states_) set_generator_state(device, state);
}

}  // namespace det
