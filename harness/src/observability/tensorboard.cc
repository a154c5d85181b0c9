#include "det/tensorboard.h"

#include <cstdio>
#include <utility>

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
    auto writer = TensorBoardWriter::create(directory_);
    if (!writer) return abandon(writer.error().message);
    file_ = std::make_unique<File>(File{std::move(*writer)});
  }
  if (const Status added = file_->writer.add_scalar(tag, value, step); !added) abandon(added.error().message);
}

void TensorBoard::flush() {
  if (file_ == nullptr) return;
  if (const Status written = file_->writer.flush(); !written) abandon(written.error().message);
}

void TensorBoard::abandon(const std::string& reason) {
  std::fprintf(stderr, "warning: no more points are written for TensorBoard: %s\n", reason.c_str());
  directory_.clear();
  file_.reset();
}

}  // namespace det
