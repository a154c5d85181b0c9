// A checkpoint in memory: everything that training changes is copied, in the layout of the file, into memory
// that is kept for this purpose. Training waits for the copy only; writing needs nothing but this memory.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "harness/src/checkpoint/file_writer.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/zip.h"

namespace det {

/// One file in PyTorch's format, in memory. take() and write() may be called by different threads, but not at
/// the same time. write() does not call LibTorch.
class Snapshot {
 public:
  /// `device` is where the tensors of a state are. For CUDA the memory is pinned,
  /// so that copies are asynchronous.
  explicit Snapshot(torch::Device device) : device_(device) {}
  /// Copies `state`. The memory is kept between calls; only the first call and one that needs more
  /// allocate. Returns after all copies have finished. Throws std::runtime_error for a tensor type that
  /// cannot be saved, std::bad_alloc.
  void take(const pickle::Value& state);
  /// Bytes of the file.
  std::uint64_t size() const { return plan_.size(); }
  /// Writes the last snapshot to a new file and syncs it. Returns the CRC-64 of the
  /// file. Errors: see write_image().
  Result<std::uint64_t> write(const std::string& path);

 private:
  void reserve(std::uint64_t bytes);
  torch::Device device_;
  ZipPlan plan_;
  PageBuffer pages_;
  torch::Tensor pinned_;        ///< takes the place of pages_ on CUDA
  char* image_ = nullptr;       ///< start of the file, aligned for direct I/O
  std::uint64_t capacity_ = 0;  ///< bytes usable at image_
};

}  // namespace det
