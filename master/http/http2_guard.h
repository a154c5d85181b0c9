// Owns watching what clients of HTTP/2 send before gRPC sees it. Version 1.51 buffers header blocks without
// bound (CVE-2023-33953) and pays dearly for streams that are reset at once (CVE-2023-44487); newer ones
// refuse such clients themselves. Frames are counted, never decoded: RFC 9113 §4.1.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace det::http {

/// What honest clients stay far below.
struct Http2Limits {
  std::size_t header_block = 32 * 1024;  ///< bytes of HEADERS and its CONTINUATIONs
  int continuations = 8;                 ///< of one block
  std::size_t other_frame = 16 * 1024;   ///< of anything but DATA
  /// Frames of a kind: so many at once, and so many a second after.
  struct Rate {
    double burst, per_second;
  };
  Rate resets{500, 100}, settings{50, 5}, pings{200, 50}, priorities{200, 50}, empty_data{500, 100};
};

class Http2Guard {
 public:
  explicit Http2Guard(const Http2Limits& limits = {});
  /// The next bytes of the client, in any pieces. Null while all is well; else why the connection should end.
  /// A connection that does not begin with HTTP/2's preface is none of ours: it is never looked at again.
  const char* look(std::string_view bytes, MonoTime now);

 private:
  struct Bucket {
    Http2Limits::Rate rate{};
    double left = 0;
    MonoTime filled;
    bool take(MonoTime now);
  };
  const char* frame(MonoTime now);

  const Http2Limits limits_;
  Bucket resets_, settings_, pings_, priorities_, empty_data_;
  std::size_t preface_seen_ = 0;
  bool ours_ = true;
  std::array<unsigned char, 9> head_{};
  std::size_t head_size_ = 0, skip_ = 0;
  bool in_block_ = false;
  std::size_t block_bytes_ = 0;
  int continuations_ = 0;
};

}  // namespace det::http
