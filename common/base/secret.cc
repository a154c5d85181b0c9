#include "common/base/secret.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace det {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kUrlAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes groups of three bytes as four characters.
std::string encode(std::string_view bytes, const char* alphabet, bool pad) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < have ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      if (i <= have) {
        text += alphabet[group >> (18 - 6 * i) & 63];
      } else if (pad) {
        text += '=';
      }
    }
  }
  return text;
}

/// Value of a base64 character in either alphabet; -1 if it is none.
int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

}  // namespace

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t at = 0; at < count;) {
    // getrandom may be interrupted by a signal or return fewer bytes for large requests.
    const ssize_t got = ::getrandom(bytes.data() + at, count - at, 0);
    if (got < 0 && errno != EINTR) {
      std::perror("getrandom");
      std::abort();
    }
    if (got > 0) at += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string random_token() { return to_base64url(random_bytes(32)); }

std::string uuid4() {
  std::string bytes = random_bytes(16);
  // Version 4 and the RFC 4122 variant.
  bytes[6] = static_cast<char>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<char>((bytes[8] & 0x3F) | 0x80);
  std::string text = to_hex(bytes);
  for (const std::size_t at : {8, 13, 18, 23}) text.insert(at, 1, '-');
  return text;
}

bool equal_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  // volatile keeps the compiler from leaving the loop at the first difference.
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(
        difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return difference == 0;
}

std::string to_base64(std::string_view bytes) { return encode(bytes, kAlphabet, true); }
std::string to_base64url(std::string_view bytes) { return encode(bytes, kUrlAlphabet, false); }

Result<std::string> from_base64(std::string_view text) {
  const auto bad = [] { return fail(Code::kInvalidArgument, "the text is not base64"); };
  if (text.ends_with('=')) {
    if (text.size() % 4 != 0) return bad();
    text.remove_suffix(text.ends_with("==") ? 2 : 1);
  }
  if (text.size() % 4 == 1) return bad();
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const int value = sextet(c);
    if (value < 0) return bad();
    group = group << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>(group >> bits & 0xFF);
    }
  }
  // Unused trailing bits must be zero, so that every byte string has exactly one encoding.
  if ((group & ((1u << bits) - 1)) != 0) return bad();
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[c & 15];
  }
  return text;
}

}  // namespace det
