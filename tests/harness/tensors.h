// Helpers for tests that compare tensors.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace det::testing {

inline const torch::Device kCpu(torch::kCPU);

/// The elements of an int64 tensor.
inline std::vector<std::int64_t> values(const torch::Tensor& tensor) {
  return {tensor.data_ptr<std::int64_t>(), tensor.data_ptr<std::int64_t>() + tensor.numel()};
}

/// Returns whether two lists of tensors have equal lengths, shapes and values.
inline bool same_bits(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!torch::equal(a[i], b[i])) return false;
  }
  return true;
}

}  // namespace det::testing
