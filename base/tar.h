// Owns the tar format as POSIX.1-2001 (ustar and pax) and GNU tar write it: blocks, header fields, extended
// headers. Knows nothing of what is allowed; that is archive.cc's. Private to base/.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det::tar {

inline constexpr std::size_t kBlock = 512;

struct Header {
  std::string path;  ///< as it stands in the archive, after extended headers
  std::int64_t size = 0;
  unsigned mode = 0;
  char type =
      '0';  ///< '0' file, '5' directory, '1' hard link, '2' symbolic link, …; 'S' also for pax sparse files
};

/// What a reader of a tar stream wants to know. A failure ends the reading.
struct Visitor {
  /// Before the content of an entry.
  std::function<Status(const Header&)> entry;
  /// A piece of the content of the entry that was named last; pieces come in order.
  std::function<Status(std::string_view)> content;
};

/// Gives the next bytes of a stream; empty at its end.
using Source = std::function<Result<std::string_view>()>;

/// Reads the stream to its very end. kDataLoss when it is not tar, is cut, or has anything but zeros after
/// its end mark.
Status read(const Source& source, const Visitor& visitor);

/// The header blocks of a file or directory with owner 0 and time 0. `path` of a directory ends with '/'.
std::string make_header(const std::string& path, std::int64_t size, unsigned mode, bool directory);
/// Zeros from the end of `size` content bytes to the end of their block.
std::string padding(std::int64_t size);
/// The two zero blocks at the end.
std::string end_mark();

}  // namespace det::tar
