// Readers of dataset files: IDX (MNIST) and the binary version of CIFAR-10.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "common/base/files.h"
#include "det/datasets.h"
#include "harness/src/base/or_throw.h"

namespace det {

torch::Tensor read_idx(const std::string& path) {
  const std::string file = path_exists(path) ? path : path + ".gz";
  const auto refuse = [&](const std::string& what) { throw std::runtime_error(file + ": " + what); };
  // zlib's gz functions also read uncompressed files.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(::gzopen(file.c_str(), "rb"), &::gzclose);
  if (in == nullptr) throw std::runtime_error(path + ": no such file, plain or .gz");
  const auto read = [&](void* into, std::size_t size) {
    auto* bytes = static_cast<char*>(into);
    while (size > 0) {
      const auto part = static_cast<unsigned>(std::min<std::size_t>(size, 1 << 30));
      const int got = ::gzread(in.get(), bytes, part);
      if (got <= 0) refuse("is damaged or ends too early");
      bytes += got, size -= got;
    }
  };
  // Header: two zero bytes, the type (8: unsigned byte), the number of dimensions; then big-endian sizes.
  unsigned char magic[4];
  read(magic, sizeof magic);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] == 0 || magic[3] > 4) {
    refuse("is no IDX file of bytes");
  }
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 1;
  for (int i = 0; i < magic[3]; ++i) {
    unsigned char size[4];
    read(size, sizeof size);
    shape.push_back(std::int64_t{size[0]} << 24 | std::int64_t{size[1]} << 16 | std::int64_t{size[2]} << 8 |
                    size[3]);
    // Limits the allocation for a damaged header to 64 GiB.
    if (shape.back() > 0 && bytes > (std::int64_t{1} << 36) / shape.back())
      refuse("is damaged (its sizes are absurd)");
    bytes *= shape.back();
  }
  torch::Tensor tensor = at::empty(shape, torch::kByte);
  read(tensor.data_ptr(), static_cast<std::size_t>(bytes));
  // Reading on detects trailing data, and makes zlib verify the checksum at the end of the file.
  char more;
  if (::gzread(in.get(), &more, 1) != 0) refuse("is damaged or longer than its sizes say");
  return tensor;
}

LabeledImages read_cifar10(const std::string& directory, bool train) {
  constexpr std::size_t kPixels = 3 * 32 * 32, kRecord = 1 + kPixels;
  std::vector<std::string> names{"test_batch.bin"};
  if (train) {
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"};
  }
  std::string records;
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    const std::string file = value_or_throw(read_file(path, std::int64_t{1} << 30));
    if (file.empty() || file.size() % kRecord != 0) {
      throw std::runtime_error(path + ": is damaged: " + std::to_string(file.size()) +
                               " bytes are no whole number of records of " + std::to_string(kRecord));
    }
    // A record is a class byte followed by the pixels of three color planes.
    for (std::size_t i = 0; i < file.size(); i += kRecord) {
      if (static_cast<unsigned char>(file[i]) < 10) continue;
      throw std::runtime_error(path + ": is damaged: record " + std::to_string(i / kRecord) +
                               " has the class " + std::to_string(static_cast<unsigned char>(file[i])) +
                               ", of 10");
    }
    records += file;
  }
  const auto count = static_cast<std::int64_t>(records.size() / kRecord);
  LabeledImages data{at::empty({count, 3, 32, 32}, torch::kByte), at::empty({count}, torch::kLong)};
  auto* pixels = data.images.data_ptr<std::uint8_t>();
  auto* labels = data.labels.data_ptr<std::int64_t>();
  for (const char* record = records.data(); record < records.data() + records.size(); record += kRecord) {
    *labels++ = static_cast<unsigned char>(*record);
    std::memcpy(pixels, record + 1, kPixels);
    pixels += kPixels;
  }
  return data;
}

}  // namespace det
