// TensorBoard: writes scalars to TensorBoard event files. Independent of LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace det {

/// Writer of one event file, which is created at the first scalar. Scalars are buffered until flush(). Used
/// by one thread.
class TensorBoard {
 public:
  /// Writes to `directory`; "" discards everything.
  explicit TensorBoard(std::string directory);
  /// Closes the file.
  ~TensorBoard();
  TensorBoard(const TensorBoard&) = delete;

  /// Adds a point of the series `tag`. Throws std::runtime_error naming the file that cannot be written.
  void add_scalar(const std::string& tag, double value, int64_t step);
  /// Writes buffered points to the file.
  void flush();

 private:
  struct File;
  std::string directory_;
  std::unique_ptr<File> file_;
};

}  // namespace det
