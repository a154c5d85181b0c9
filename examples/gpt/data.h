// A text file as a dataset of windows of bytes.
#pragma once

#include <det/det.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// Windows of `length` bytes, one at every multiple of `stride`. A batch is (input, target), both int64
/// tensors [B, length]; the target is the input shifted by one byte.
class Windows : public det::Dataset {
 public:
  Windows(torch::Tensor text, int64_t length, int64_t stride)
      : text_(std::move(text)),
        length_(length),
        stride_(stride),
        size_((text_.numel() - length - 1) / stride + 1) {
    if (text_.numel() < length + 1) throw std::runtime_error("the text is shorter than the context");
  }
  int64_t size() const override { return size_; }
  det::Batch get_batch(const std::vector<int64_t>& indices) const override {
    std::vector<torch::Tensor> windows;
    for (const int64_t index : indices) windows.push_back(text_.narrow(0, index * stride_, length_ + 1));
    const torch::Tensor all = torch::stack(windows).to(torch::kLong);
    return {all.narrow(1, 0, length_).clone(), all.narrow(1, 1, length_).clone()};
  }
  using Dataset::get_batch;

 private:
  torch::Tensor text_;
  int64_t length_, stride_, size_;
};

/// Returns the file's bytes as a uint8 tensor [size].
inline torch::Tensor read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path + "; set data.file");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return torch::from_blob(const_cast<char*>(text.data()), {static_cast<int64_t>(text.size())}, torch::kByte)
      .clone();
}
