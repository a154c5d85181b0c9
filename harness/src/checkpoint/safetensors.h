// Reads and writes the safetensors format: an 8-byte little-endian header length, a JSON header, then the
// bytes of the tensors (https://github.com/huggingface/safetensors#format).
#pragma once

#include <string>

#include "harness/src/checkpoint/pickle.h"

namespace det::safetensors {

/// Writes tensors to a new file and syncs it. Tensors are stored contiguous, widest elements first. Throws
/// std::runtime_error naming file and tensor.
void save(const pickle::Dict& tensors, const std::string& path);

/// Returns the tensors as copies, in the order of their data. Validates the header before allocating a
/// tensor: its length (at most 100 MB), element types, shapes, and that the tensors fill the data without gap
/// or overlap. Throws std::runtime_error naming the file and the tensor.
pickle::Dict load(const std::string& path);

}  // namespace det::safetensors
