// TensorBoard: writes scalars to TensorBoard event files. Independent of LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace det {

/// Writer of one event file, which is created at the first scalar. Scalars are buffered until flush(). When
/// the file cannot be written, a warning says why, and further scalars are discarded: training goes on. Used
/// by one thread.
class TensorBoard {
 public:
  /// Writes to `directory`; "" discards everything.
  explicit TensorBoard(std::string directory);
  /// Closes the file.
  ~TensorBoard();
  TensorBoard(const TensorBoard&) = delete;

  /// Adds a point of the series `tag`.
  void add_scalar(const std::string& tag, double value, int64_t step);
  /// Writes buffered points to the file.
  void flush();

 private:
  void abandon(const std::string& reason);

  struct File;
  std::string directory_;
  std::unique_ptr<File> file_;
};

}  // namespace det
