// All differences between LibTorch versions (1.13 and 2.x). No other file may check the version.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>
#include <torch/version.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>

namespace det::compat {

/// The text that stands for a parameter in an optimizer's archive: its address as text in 1.13, as a decimal
/// number in 2.x.
template <typename Optimizer>
std::string archive_key(Optimizer& optimizer, const c10::TensorImpl* parameter) {
  using Key = typename std::decay_t<decltype(optimizer.state())>::key_type;
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << parameter;
    return text.str();
  } else {
    return std::to_string(reinterpret_cast<std::uintptr_t>(parameter));
  }
}

/// The key under which an optimizer keeps a parameter's state: the address as
/// text in 1.13, as a pointer in 2.x.
template <typename Optimizer>
auto state_key(Optimizer& optimizer, const torch::Tensor& parameter) {
  using Key = typename std::decay_t<decltype(optimizer.state())>::key_type;
  if constexpr (std::is_same_v<Key, std::string>) {
    return archive_key(optimizer, parameter.unsafeGetTensorImpl());
  } else {
    return static_cast<Key>(parameter.unsafeGetTensorImpl());
  }
}

/// The shape for messages, such as "[64, 10]".
inline std::string shape_text(const torch::Tensor& tensor) {
  std::string text = "[";
  for (int64_t i = 0; i < tensor.dim(); ++i) text += (i > 0 ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

/// Functions that AOTInductor compiled (.pt2) run from LibTorch 2.6 on.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6)
#define DET_HAS_AOT_INDUCTOR 1
#else
#define DET_HAS_AOT_INDUCTOR 0
#endif

/// The version of LibTorch that this library was compiled with, such as "2.1.0".
inline std::string torch_version() { return TORCH_VERSION; }

}  // namespace det::compat
