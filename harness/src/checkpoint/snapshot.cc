#include "harness/src/checkpoint/snapshot.h"

#include <ATen/Parallel.h>
#include <torch/cuda.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace det {
namespace {

/// One copy of up to 1 MiB.
struct Piece {
  char* to;
  const char* from;
  std::uint64_t bytes;
};

/// Copies to a 64-byte aligned destination with non-temporal stores: the destination is not read into the
/// caches, and the training data in them is not evicted.
void copy_past_caches(char* to, const char* from, std::uint64_t bytes) {
#ifdef __SSE2__
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto* target = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a), _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c), _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
#endif
  std::memcpy(to, from, bytes);
}

/// Copies with all training threads, which are idle during a snapshot.
void copy_pieces(const std::vector<Piece>& pieces) {
  constexpr std::int64_t kGrain = 4;  // pieces of 1 MiB
  at::parallel_for(0, static_cast<std::int64_t>(pieces.size()), kGrain,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i)
                       copy_past_caches(pieces[i].to, pieces[i].from, pieces[i].bytes);
                   });
}

void add_pieces(std::vector<Piece>& pieces, char* to, const char* from, std::uint64_t bytes) {
  constexpr std::uint64_t kPiece = 1 << 20;
  for (std::uint64_t at = 0; at < bytes; at += kPiece) {
    pieces.push_back({to + at, from + at, std::min(kPiece, bytes - at)});
  }
}

}  // namespace

void Snapshot::reserve(std::uint64_t bytes) {
  if (bytes <= capacity_) return;
  if (!device_.is_cuda()) {
    pages_.reserve(bytes);
    image_ = pages_.data(), capacity_ = pages_.capacity();
    return;
  }
  // Frees the old buffer first, so that both never exist at once. The extra page allows aligning the start.
  const std::uint64_t whole = round_up(bytes, kDirectAlignment);
  pinned_ = torch::Tensor();
  pinned_ = torch::empty({static_cast<std::int64_t>(whole + kDirectAlignment)},
                         torch::dtype(torch::kByte).pinned_memory(true));
  const auto address = reinterpret_cast<std::uintptr_t>(pinned_.data_ptr());
  image_ = static_cast<char*>(pinned_.data_ptr()) + (round_up(address, kDirectAlignment) - address);
  capacity_ = whole;
}

void Snapshot::take(const pickle::Value& state) {
  torch::NoGradGuard no_grad;
  const pickle::Encoded encoded = pickle::encode(state);
  constexpr std::string_view kByteOrder = "little", kVersion = "3\n";
  plan_ = ZipPlan();
  plan_.add("archive/data.pkl", encoded.pickle.size());
  plan_.add("archive/byteorder", kByteOrder.size());
  for (std::size_t i = 0; i < encoded.tensors.size(); ++i) {
    plan_.add("archive/data/" + std::to_string(i), encoded.tensors[i].nbytes());
  }
  plan_.add("archive/version", kVersion.size());
  plan_.finish();
  reserve(plan_.size());

  plan_.write_frame(image_);
  const auto put = [&](std::size_t entry, std::string_view bytes) {
    std::memcpy(image_ + plan_.offset(entry), bytes.data(), bytes.size());
  };
  put(0, encoded.pickle);
  put(1, kByteOrder);
  put(encoded.tensors.size() + 2, kVersion);

  std::vector<Piece> pieces;
  bool asynchronous = false;
  for (std::size_t i = 0; i < encoded.tensors.size(); ++i) {
    const torch::Tensor& tensor = encoded.tensors[i];
    char* to = image_ + plan_.offset(i + 2);
    if (tensor.numel() == 0) continue;
    if (tensor.device().is_cpu() && tensor.is_non_overlapping_and_dense()) {
      add_pieces(pieces, to, static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
      continue;
    }
    torch::Tensor target;
    // LibTorch copies asynchronously only to tensors with pinned storage, so the target must be a view.
    if (pinned_.defined()) {
      const std::int64_t offset = to - static_cast<char*>(pinned_.data_ptr());
      target =
          pinned_.narrow(0, offset, static_cast<std::int64_t>(tensor.nbytes())).view(tensor.scalar_type());
    } else {
      target = torch::from_blob(to, {tensor.numel()}, tensor.scalar_type());
    }
    target.as_strided(tensor.sizes(), pickle::kept_strides(tensor), target.storage_offset())
        .copy_(tensor, true);
    asynchronous = asynchronous || tensor.is_cuda();
  }
  copy_pieces(pieces);  // overlaps with the device's copies
  if (asynchronous) torch::cuda::synchronize(device_.index());
}

Result<std::uint64_t> Snapshot::write(const std::string& path) {
  // The checksums are computed while earlier blocks are being written.
  ZipSealer sealer(plan_, image_);
  return write_image(path, image_, plan_.size(), [&](std::uint64_t end) { sealer.seal(end); });
}

}  // namespace det
