#include "det/tensorboard.h"

#include "harness/src/base/or_throw.h"
#include "harness/src/observability/tfevents.h"

namespace det {

struct TensorBoard::File {
  TensorBoardWriter writer;
};

TensorBoard::TensorBoard(std::string directory) : directory_(std::move(directory)) {}
TensorBoard::~TensorBoard() = default;

void TensorBoard::add_scalar(const std::string& tag, double value, int64_t step) {
  if (directory_.empty()) return;
  // The file is created lazily: a trial without scalars leaves no empty run in TensorBoard.
  if (file_ == nullptr) {
    file_ = std::make_unique<File>(File{value_or_throw(TensorBoardWriter::create(directory_))});
  }
  ok_or_throw(file_->writer.add_scalar(tag, value, step));
}

void TensorBoard::flush() {
  if (file_ != nullptr) ok_or_throw(file_->writer.flush());
}

}  // namespace det
