// Owns the table of PyTorch's storage classes: which element type each name in a file stands for.
#pragma once

#include <torch/types.h>

#include <array>
#include <string_view>

namespace det::pickle {

struct StorageClass {
  std::string_view name;  ///< in the module "torch"
  torch::ScalarType type;
};
inline constexpr std::array<StorageClass, 12> kStorageClasses{{
    {"FloatStorage", torch::kFloat},
    {"DoubleStorage", torch::kDouble},
    {"HalfStorage", torch::kHalf},
    {"BFloat16Storage", torch::kBFloat16},
    {"LongStorage", torch::kLong},
    {"IntStorage", torch::kInt},
    {"ShortStorage", torch::kShort},
    {"CharStorage", torch::kChar},
    {"ByteStorage", torch::kByte},
    {"BoolStorage", torch::kBool},
    {"ComplexFloatStorage", torch::kComplexFloat},
    {"ComplexDoubleStorage", torch::kComplexDouble},
}};

}  // namespace det::pickle
