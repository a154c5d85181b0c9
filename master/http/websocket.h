// Frames of WebSockets (RFC 6455), for TCP connections that clients of Determined AI open as WebSockets.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det::http {

/// Largest payload of a frame of a client, in bytes.
inline constexpr std::size_t kMaxFrame = 1 << 20;

/// Returns the Sec-WebSocket-Accept of a Sec-WebSocket-Key.
std::string websocket_accept(std::string_view key);
/// Returns a binary frame of the server.
std::string data_frame(std::string_view payload);
/// Returns a frame that closes the WebSocket normally.
std::string close_frame();

/// Decodes the frames of one client. Not thread-safe.
class FrameReader {
 public:
  struct Frames {
    std::string data;     ///< payload of data frames
    std::string replies;  ///< frames to send: pongs
    bool closed = false;  ///< the client has sent a close frame
  };
  /// Adds bytes and returns what they complete. Errors: kInvalidArgument for frames that RFC 6455 forbids or
  /// that are larger than kMaxFrame.
  Result<Frames> feed(std::string_view bytes);

 private:
  std::string waiting_;
};

}  // namespace det::http
