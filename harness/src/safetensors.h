// Owns the safetensors format: 8 bytes for the length of a JSON header, the header, the tensors' bytes one
// after the other. (Format: https://github.com/huggingface/safetensors#format.)
#pragma once

#include <string>

#include "pickle.h"

namespace det::safetensors {

/// Writes tensors to a new file, contiguous, those of the widest elements first. Throws std::runtime_error
/// naming file and tensor.
void save(const pickle::Dict& tensors, const std::string& path);

/// A dict of copies. Checks everything the format demands before a tensor is made: the header's length (at
/// most 100 MB), names, element types, shapes, and that the tensors fill the data without gap or overlap.
/// Throws std::runtime_error naming the file and the tensor.
pickle::Dict load(const std::string& path);

}  // namespace det::safetensors
