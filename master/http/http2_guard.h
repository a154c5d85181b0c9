// Inspects the HTTP/2 frames of clients before gRPC receives them. gRPC 1.51 buffers header blocks without
// bound (CVE-2023-33953) and spends much work on streams that are reset at once (CVE-2023-44487); newer
// versions reject such clients themselves. Frames are counted by their header (RFC 9113, section 4.1), never
// decoded.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/base/clock.h"

namespace det::http {

/// Limits far above the traffic of any legitimate client.
struct Http2Limits {
  /// Bytes of a HEADERS frame with its CONTINUATION frames.
  std::size_t header_block = 32 * 1024;
  /// CONTINUATION frames per header block.
  int continuations = 8;
  /// Bytes of any frame except DATA.
  std::size_t other_frame = 16 * 1024;
  /// Token bucket for frames of one kind.
  struct Rate {
    double burst, per_second;
  };
  /// Empty DATA frames count unless they end a stream.
  Rate resets{500, 100}, settings{50, 5}, pings{200, 50}, priorities{200, 50}, empty_data{500, 100};
};

/// Inspects one connection. Not thread-safe.
class Http2Guard {
 public:
  explicit Http2Guard(const Http2Limits& limits = {});
  /// Inspects the next bytes of the client, split at any point. Returns null, or the reason to close the
  /// connection. A connection that does not begin with the HTTP/2 preface is ignored from then on.
  const char* inspect(std::string_view bytes, MonoTime now);

 private:
  /// Token bucket.
  struct Bucket {
    Http2Limits::Rate rate{};
    double left = 0;
    MonoTime filled;
    bool take(MonoTime now);
  };
  /// Checks the frame behind the header in head_.
  const char* frame(MonoTime now);

  const Http2Limits limits_;
  Bucket resets_, settings_, pings_, priorities_, empty_data_;
  std::size_t preface_seen_ = 0;
  /// False once the connection has turned out not to be HTTP/2.
  bool ours_ = true;
  /// Frame header (9 bytes) read so far, and payload bytes still to skip.
  std::array<unsigned char, 9> head_{};
  std::size_t head_size_ = 0, skip_ = 0;
  /// Inside a header block that has not ended.
  bool in_block_ = false;
  std::size_t block_bytes_ = 0;
  int continuations_ = 0;
};

}  // namespace det::http
