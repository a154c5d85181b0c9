// Names and limits of reported media, checked by training processes and by the master.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/text.h"

namespace det {

/// Bytes of the content of one entry; with base64 a request stays below 4 MiB.
inline constexpr std::size_t kMaxMediaBytes = 2 << 20;
inline constexpr std::size_t kMaxMediaCaption = 1000;  ///< bytes of UTF-8
/// Quota of one trial: entries, and bytes of their contents.
inline constexpr std::int64_t kMaxMediaEntries = 20'000, kMaxMediaTrialBytes = 2LL << 30;
inline constexpr int kMaxMediaBins = 1000, kMaxMediaColumns = 100, kMaxMediaRows = 10'000;

/// Name of an entry: 1 to 128 letters, digits, spaces and "_", "-", ".", "="; a slash separates groups. No
/// part is empty or begins with a dot or space, so that a name is also a relative path.
inline bool is_media_name(std::string_view name) {
  if (name.empty() || name.size() > 128) return false;
  bool begins = true;  // a part
  for (const char c : name) {
    if (c == '/') {
      if (begins) return false;
      begins = true;
      continue;
    }
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    const bool mark = c == '-' || c == '=' || c == '.' || c == ' ';
    if (!letter && !mark) return false;
    if (begins && (c == '.' || c == ' ')) return false;
    begins = false;
  }
  return !begins;
}

/// Name of a reported file, without a directory: 1 to 128 characters as in is_media_name().
inline bool is_media_file_name(std::string_view name) {
  return is_media_name(name) && name.find('/') == name.npos;
}

/// True for the first bytes of a PNG or JPEG image. Other formats, SVG among them, are not accepted.
inline bool is_png_or_jpeg(std::string_view content) {
  return content.starts_with("\x89PNG\r\n\x1a\n") || content.starts_with("\xff\xd8\xff");
}

}  // namespace det
