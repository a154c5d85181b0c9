#include "det/tensorboard.h"

#include <stdexcept>

#include "harness/src/observability/tfevents.h"

namespace det {
namespace {

/// Throws std::runtime_error for a failed status.
void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

}  // namespace

struct TensorBoard::File {
  TensorBoardWriter writer;
};

TensorBoard::TensorBoard(std::string directory) : directory_(std::move(directory)) {}
TensorBoard::~TensorBoard() = default;

void TensorBoard::add_scalar(const std::string& tag, double value, int64_t step) {
  if (directory_.empty()) return;
  // The file is created lazily: a trial without scalars leaves no empty run in TensorBoard.
  if (file_ == nullptr) {
    auto writer = TensorBoardWriter::create(directory_);
    if (!writer) throw std::runtime_error(writer.error().message);
    file_ = std::make_unique<File>(File{std::move(*writer)});
  }
  check(file_->writer.add_scalar(tag, value, step));
}

void TensorBoard::flush() {
  if (file_ != nullptr) check(file_->writer.flush());
}

}  // namespace det
