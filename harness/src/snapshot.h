// Owns the moment a checkpoint is taken: everything that training changes is copied into memory kept for
// that, in the form of the file it will be. The copy is all that training waits for; writing needs nothing
// but this memory.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "file_writer.h"
#include "pickle.h"
#include "zip.h"

namespace det {

/// One file in PyTorch's format, in memory. take() and write() are not called at the same time; they may be
/// called by different threads. write() calls nothing of LibTorch.
class Snapshot {
 public:
  /// `device`: where the tensors of a state are. For CUDA the memory is pinned, so that copies run side by
  /// side.
  explicit Snapshot(torch::Device device) : device_(device) {}
  /// Copies `state`. The memory is kept from call to call: only the first one, and one that needs more, pays
  /// for getting it. Throws std::runtime_error naming a tensor type that cannot be saved, std::bad_alloc.
  void take(const pickle::Value& state);
  /// Bytes of the file.
  std::uint64_t size() const { return plan_.size(); }
  /// Writes what was taken last to a new file, durably; returns its CRC-64.
  Result<std::uint64_t> write(const std::string& path);

 private:
  void reserve(std::uint64_t bytes);
  torch::Device device_;
  ZipPlan plan_;
  PageBuffer pages_;
  torch::Tensor pinned_;  ///< instead of pages_, on CUDA
  char* image_ = nullptr;
  std::uint64_t capacity_ = 0;
};

}  // namespace det
