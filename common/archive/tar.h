// Tar format: POSIX.1-2001 (ustar, pax) and the GNU extensions for long names. Parses and writes blocks. The
// policy on allowed entries is in archive.cc. Private to common/archive/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det::tar {

/// Size of a tar block in bytes.
inline constexpr std::size_t kBlock = 512;

/// An entry after its extended headers have been applied.
struct Header {
  std::string path;       ///< as stored in the archive
  std::int64_t size = 0;  ///< bytes
  unsigned mode = 0;
  /// Type flag: '0' file, '5' directory, '1' hard link, '2' symbolic link, ...; 'S' also for pax sparse
  /// files.
  char type = '0';
};

/// Callbacks of read. An error that a callback returns ends the reading.
struct Visitor {
  /// Called with the header, before the content of the entry.
  std::function<Status(const Header&)> entry;
  /// Called for each piece of the current entry's content, in order.
  std::function<Status(std::string_view)> content;
};

/// Returns the next bytes of a stream; empty at its end.
using Source = std::function<Result<std::string_view>()>;

/// Reads the stream to its end. Errors: kDataLoss (not tar, truncated, or non-zero bytes after the end mark),
/// errors of `source` and of the callbacks.
Status read(const Source& source, const Visitor& visitor);

/// Returns the header blocks of a file or directory, with owner 0 and time 0. Writes a pax header if the path
/// is longer than 100 bytes. The path of a directory must end with '/'.
std::string make_header(const std::string& path, std::int64_t size, unsigned mode, bool directory);
/// Returns the zeros that fill the last block after `size` bytes of content.
std::string padding(std::int64_t size);
/// Returns the two zero blocks that end an archive.
std::string end_mark();

}  // namespace det::tar
