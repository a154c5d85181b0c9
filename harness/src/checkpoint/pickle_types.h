// The table of PyTorch's storage classes, shared by the pickle reader and writer.
#pragma once

#include <torch/types.h>

#include <array>
#include <string_view>

namespace det::pickle {

/// Maps the name of a storage class to its element type.
struct StorageClass {
  std::string_view name;  ///< in the module "torch"
  torch::ScalarType type;
};
/// Every element type that a checkpoint can hold. Files with other types are rejected. The reader looks up
/// types by name, the writer names by type.
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
