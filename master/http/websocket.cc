#include "master/http/websocket.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

#include "common/base/secret.h"

namespace det::http {
namespace {

// Opcodes. Those up to kBinaryFrame carry data, those from kCloseFrame control the connection.
constexpr unsigned kBinaryFrame = 2, kCloseFrame = 8, kPingFrame = 9, kPongFrame = 10;

std::string make_frame(unsigned opcode, std::string_view payload) {
  std::string out(1, static_cast<char>(0x80U | opcode));
  const std::uint64_t size = payload.size();
  if (size < 126) {
    out += static_cast<char>(size);
  } else {
    const int bytes = size < 65536 ? 2 : 8;
    out += static_cast<char>(bytes == 2 ? 126 : 127);
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 0xff);
  }
  return out += payload;
}

/// The header of a frame of a client.
struct FrameHead {
  unsigned opcode = 0;
  bool last = false;
  std::size_t size = 0;  ///< of the header, with the mask
  std::uint64_t payload = 0;
};

/// Returns false while the header is incomplete.
Result<bool> read_head(std::string_view bytes, FrameHead& head) {
  const auto at = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (bytes.size() < 2) return false;
  head.opcode = at(0) & 0x0fU;
  head.last = (at(0) & 0x80U) != 0;
  const bool control = head.opcode >= kCloseFrame;
  if ((at(0) & 0x70U) != 0 || (head.opcode > kBinaryFrame && !control) || head.opcode > kPongFrame)
    return fail(Code::kInvalidArgument, "a WebSocket frame of an unknown kind");
  // RFC 6455, section 5.1: frames of a client are masked.
  if ((at(1) & 0x80U) == 0) return fail(Code::kInvalidArgument, "a WebSocket frame without a mask");
  const unsigned length = at(1) & 0x7fU;
  if (control && (length > 125 || !head.last))
    return fail(Code::kInvalidArgument, "a WebSocket control frame in parts");
  const std::size_t extra = length == 126 ? 2 : length == 127 ? 8 : 0;
  head.size = 2 + extra + 4;
  if (bytes.size() < head.size) return false;
  head.payload = extra == 0 ? length : 0;
  for (std::size_t i = 0; i < extra; ++i) head.payload = head.payload << 8 | at(2 + i);
  if (head.payload > kMaxFrame) return fail(Code::kInvalidArgument, "a WebSocket frame above 1 MiB");
  return true;
}

}  // namespace

std::string websocket_accept(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
  return to_base64({reinterpret_cast<const char*>(digest.data()), size});
}

std::string data_frame(std::string_view payload) { return make_frame(kBinaryFrame, payload); }

// 1000: a normal end.
std::string close_frame() { return make_frame(kCloseFrame, {"\x03\xe8", 2}); }

Result<FrameReader::Frames> FrameReader::feed(std::string_view bytes) {
  waiting_ += bytes;
  Frames frames;
  std::size_t begin = 0;
  while (!frames.closed) {
    const std::string_view rest = std::string_view(waiting_).substr(begin);
    FrameHead head;
    TRY_ASSIGN(const bool complete, read_head(rest, head));
    if (!complete || rest.size() < head.size + head.payload) break;
    const std::string_view mask = rest.substr(head.size - 4, 4);
    std::string payload(rest.substr(head.size, head.payload));
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
    begin += head.size + head.payload;
    if (head.opcode == kCloseFrame) frames.closed = true;
    if (head.opcode == kPingFrame) frames.replies += make_frame(kPongFrame, payload);
    if (head.opcode <= kBinaryFrame) frames.data += payload;
  }
  waiting_.erase(0, begin);
  return frames;
}

}  // namespace det::http
