#include "master/http/http2_guard.h"

#include <algorithm>

namespace det::http {
namespace {

constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// No HTTP/1.1 method begins with the first four bytes of the preface.
constexpr std::size_t kTelling = 4;

enum Type : unsigned char {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kContinuation = 9,
};
constexpr unsigned char kEndStream = 1, kEndHeaders = 4;

}  // namespace

bool Http2Guard::Bucket::take(MonoTime now) {
  const double seconds = std::chrono::duration<double>(now - filled).count();
  left = std::min(rate.burst, left + seconds * rate.per_second);
  filled = now;
  if (left < 1) return false;
  left -= 1;
  return true;
}

Http2Guard::Http2Guard(const Http2Limits& limits) : limits_(limits) {
  const auto fill = [](Bucket& bucket, Http2Limits::Rate rate) {
    bucket = {.rate = rate, .left = rate.burst};
  };
  fill(resets_, limits.resets);
  fill(settings_, limits.settings);
  fill(pings_, limits.pings);
  fill(priorities_, limits.priorities);
  fill(empty_data_, limits.empty_data);
}

const char* Http2Guard::inspect(std::string_view bytes, MonoTime now) {
  while (ours_ && !bytes.empty()) {
    // The preface may arrive in any number of pieces.
    if (preface_seen_ < kClientPreface.size()) {
      if (bytes.front() != kClientPreface[preface_seen_]) {
        ours_ = false;
        return preface_seen_ >= kTelling ? "a preface that is none" : nullptr;
      }
      ++preface_seen_;
      bytes.remove_prefix(1);
    } else if (skip_ > 0) {
      // Payload of the current frame.
      const std::size_t count = std::min(skip_, bytes.size());
      skip_ -= count;
      bytes.remove_prefix(count);
    } else {
      // The frame header may be split as well.
      head_[head_size_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (head_size_ < head_.size()) continue;
      head_size_ = 0;
      if (const char* why = frame(now)) return why;
    }
  }
  return nullptr;
}

const char* Http2Guard::frame(MonoTime now) {
  // Frame header: 24 bits of length, type, flags, stream id.
  const std::size_t size =
      static_cast<std::size_t>(head_[0]) << 16 | static_cast<std::size_t>(head_[1]) << 8 | head_[2];
  const unsigned char type = head_[3], flags = head_[4];
  skip_ = size;
  // A header block must not be interleaved with other frames (RFC 9113, section 4.3).
  if (in_block_ && type != kContinuation) return "a frame inside a header block";
  if (type != kData && size > limits_.other_frame) return "a frame that is too large";
  switch (type) {
    // Counters of a header block start with its HEADERS frame.
    case kHeaders:
      block_bytes_ = size;
      continuations_ = 0;
      in_block_ = (flags & kEndHeaders) == 0;
      return nullptr;
    case kContinuation:
      if (!in_block_) return "a continuation of nothing";
      block_bytes_ += size;
      in_block_ = (flags & kEndHeaders) == 0;
      if (block_bytes_ > limits_.header_block) return "headers that are too large";
      return ++continuations_ > limits_.continuations ? "too many continuations" : nullptr;
    case kReset:
      return resets_.take(now) ? nullptr : "too many resets";
    case kSettings:
      return settings_.take(now) ? nullptr : "too many settings";
    case kPing:
      return pings_.take(now) ? nullptr : "too many pings";
    case kPriority:
      return priorities_.take(now) ? nullptr : "too many priorities";
    // Empty DATA frames are a cheap flood; an empty one that ends the stream is legitimate.
    case kData:
      return size > 0 || (flags & kEndStream) != 0 || empty_data_.take(now) ? nullptr : "too much empty data";
    default:
      return nullptr;
  }
}

}  // namespace det::http
