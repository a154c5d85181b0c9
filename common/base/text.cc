#include "common/base/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace det {
namespace {

/// Length of the well-formed UTF-8 sequence at the front of `text`; 0 if it is ill-formed.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  // 0x80..0xBF are continuation bytes; 0xC0, 0xC1 start overlong forms; above 0xF4 is beyond U+10FFFF.
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) > 0x9F;
  const bool too_large = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const std::size_t at = text.find(separator);
    pieces.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) text += separator;
    text += pieces[i];
  }
  return text;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::string to_upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), upper);
  return result;
}

std::optional<std::size_t> find_bad_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    // Fast path: eight ASCII bytes at a time, which is nearly all of most texts.
    std::uint64_t eight = 0;
    if (text.size() - at >= 8) std::memcpy(&eight, text.data() + at, 8);
    if (text.size() - at >= 8 && (eight & 0x8080'8080'8080'8080) == 0) {
      at += 8;
      continue;
    }
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string make_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      result += "\xEF\xBF\xBD";
    } else if (text[at] == '\0') {
      result += "\xE2\x90\x80";
    } else {
      result += text.substr(at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

bool has_control_characters(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte == 0x7F) return true;
    const auto next = at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;
    const auto third = at + 2 < text.size() ? static_cast<unsigned char>(text[at + 2]) : 0;
    if (byte == 0xC2 && next >= 0x80 && next <= 0x9F) return true;  // C1
    // U+200E, U+200F (direction marks) and U+202A..U+202E (embeddings and overrides).
    if (byte == 0xE2 && next == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xAA && third <= 0xAE)))
      return true;
    if (byte == 0xE2 && next == 0x81 && third >= 0xA6 && third <= 0xA9) return true;  // bidi isolates
    // U+200B, U+2060 and U+FEFF have no width: names that differ in them look alike.
    if ((byte == 0xE2 && next == 0x80 && third == 0x8B) || (byte == 0xE2 && next == 0x81 && third == 0xA0) ||
        (byte == 0xEF && next == 0xBB && third == 0xBF))
      return true;
  }
  return false;
}

bool is_variable_name(std::string_view text) {
  constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return !text.empty() && (text[0] < '0' || text[0] > '9') &&
         text.find_first_not_of(kAllowed) == std::string_view::npos;
}

bool is_compiled_step(std::string_view entrypoint) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
  return entrypoint.ends_with(".pt2") && entrypoint.find_first_not_of(kAllowed) == entrypoint.npos &&
         entrypoint.front() != '/' && entrypoint.front() != '-' && entrypoint.find("..") == entrypoint.npos;
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    // One row of the dynamic program; `diagonal` is the value at (i-1, j-1).
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  std::string nearest;
  // Exclusive bound: a distance below 3 and below the length of the word.
  int best = std::min<int>(3, static_cast<int>(std::min<std::size_t>(word.size(), 3)));
  for (const std::string& candidate : candidates) {
    // The length difference is a lower bound of the distance.
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter > 2) continue;
    const int distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(word, candidates);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

}  // namespace det
