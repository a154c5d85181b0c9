// HTTP/2 frame sequences that the guard passes to gRPC or refuses as floods or oversized.
#include "master/http/http2_guard.h"

#include <catch2/catch.hpp>
#include <string>

#include "bench.h"
#include "common/base/wait.h"

namespace det {
namespace {

using http::Http2Guard;
using http::Http2Limits;

const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string frame(int type, int flags, const std::string& payload, int stream = 1) {
  std::string head;
  for (const int shift : {16, 8, 0}) head += static_cast<char>(payload.size() >> shift & 0xff);
  head += static_cast<char>(type);
  head += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) head += static_cast<char>(stream >> shift & 0xff);
  return head + payload;
}
std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}
std::string bytes(std::size_t count) { return std::string(count, 'x'); }

struct Case {
  const char* what;
  std::string sent;  ///< Bytes after the preface.
  const char* why;   ///< Expected reason for the refusal; "" if the bytes pass.
};

std::vector<Case> cases() {
  const std::string reset = frame(3, 0, bytes(4)), settings = frame(4, 0, ""), ping = frame(6, 0, bytes(8));
  return {
      {"an ordinary call", settings + frame(1, 4, bytes(300)) + frame(0, 1, bytes(5000)), ""},
      {"a large message", frame(1, 4, bytes(300)) + frame(0, 0, bytes(4'000'000)), ""},
      {"headers in two pieces", frame(1, 0, bytes(9000)) + frame(9, 4, bytes(2000)), ""},
      {"calls that are cancelled now and then", times(100, frame(1, 4, bytes(50)) + reset), ""},
      {"an unknown frame", frame(0x42, 0, bytes(100)), ""},
      {"F3: streams that are reset at once", times(600, frame(1, 4, bytes(50)) + reset), "too many resets"},
      {"F2: headers without end", frame(1, 0, bytes(16'000)) + times(9, frame(9, 0, bytes(16'000))),
       "headers that are too large"},
      {"a header of 8 MB in one frame", frame(1, 4, bytes(8'000'000)), "a frame that is too large"},
      {"headers in crumbs", frame(1, 0, "") + times(20, frame(9, 0, "")), "too many continuations"},
      {"data inside headers", frame(1, 0, bytes(10)) + frame(0, 1, bytes(10)),
       "a frame inside a header block"},
      {"a continuation of nothing", frame(9, 4, bytes(10)), "a continuation of nothing"},
      {"a flood of pings", times(300, ping), "too many pings"},
      {"a flood of settings", times(100, settings), "too many settings"},
      {"a flood of priorities", times(300, frame(2, 0, bytes(5))), "too many priorities"},
      {"a flood of empty data", times(600, frame(0, 0, "")), "too much empty data"},
      {"settings of a megabyte", frame(4, 0, bytes(1'000'000)), "a frame that is too large"},
  };
}

TEST_CASE("valid frames pass and floods are refused, for any segmentation of the bytes") {
  for (const Case& each : cases()) {
    for (const std::size_t piece :
         {std::size_t{1} << 20, std::size_t{1000}, std::size_t{7}, std::size_t{1}}) {
      if (each.sent.size() / piece > 2'000'000) continue;
      Http2Guard guard;
      const std::string all = kPreface + each.sent;
      const char* why = nullptr;
      for (std::size_t at = 0; at < all.size() && !why; at += piece)
        why = guard.inspect(std::string_view(all).substr(at, piece), MonoTime{});
      INFO(each.what << ", pieces of " << piece);
      CHECK(std::string(why ? why : "") == each.why);
    }
  }
}

TEST_CASE("rate-limited frames pass below the limit") {
  Http2Guard guard;
  CHECK(guard.inspect(kPreface, MonoTime{}) == nullptr);
  for (int i = 0; i < 5000; ++i)
    REQUIRE(guard.inspect(frame(3, 0, bytes(4)), MonoTime{std::int64_t{i} * 20'000}) == nullptr);
}

TEST_CASE("HTTP/1.1 is not inspected, and a preface with another continuation is refused") {
  Http2Guard http;
  CHECK(http.inspect("POST /x HTTP/1.1\r\nHost: a\r\n\r\n" + times(1000, frame(3, 0, bytes(4))),
                     MonoTime{}) == nullptr);
  Http2Guard odd;
  CHECK(odd.inspect("PRI * HTTP/1.1\r\n", MonoTime{}) != nullptr);
}

}  // namespace
}  // namespace det
