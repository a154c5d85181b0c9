// Owns TensorBoard: a trial's scalars in files that TensorBoard shows. No LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace det {

/// Makes its event file at the first scalar. Used by one thread.
class TensorBoard {
 public:
  /// "" writes nothing anywhere.
  explicit TensorBoard(std::string directory);
  ~TensorBoard();
  TensorBoard(const TensorBoard&) = delete;

  /// Throws std::runtime_error naming the file that cannot be written.
  void add_scalar(const std::string& tag, double value, int64_t step);
  /// What was added is in the file.
  void flush();

 private:
  struct File;
  std::string directory_;
  std::unique_ptr<File> file_;
};

}  // namespace det
