// Tar archives of model directories. Packing is deterministic: equal content gives equal bytes. Unpacking is
// safe for untrusted input: only regular files and directories are created, and nothing outside the target.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/archive/ignore.h"
#include "common/base/result.h"

namespace det {

/// Bounds on an archive. The defaults are the limits that the product documents for code archives.
struct ArchiveLimits {
  std::int64_t packed_bytes = 96LL << 20;     ///< compressed size
  std::int64_t unpacked_bytes = 512LL << 20;  ///< sum of all file contents
  /// Maximum of unpacked size / packed size (zip-bomb guard), checked after the first MiB.
  std::int64_t ratio = 100;
  std::int64_t entries = 50'000;  ///< files and directories, implied parent directories included
  std::size_t path_bytes = 512;
  std::size_t component_bytes = 255;  ///< one name between slashes
  int depth = 32;                     ///< levels of directories
};

/// A file or directory in memory.
struct ArchiveEntry {
  std::string path;     ///< relative, '/' separated, normalized (no "", "." or "..")
  std::string content;  ///< empty for a directory
  bool directory = false;
  mode_t mode = 0644;  ///< normalized: 0755 (directory or owner-executable) or 0644
};

/// Metadata of an entry, without its content.
struct ArchiveItem {
  std::string path;
  std::int64_t size = 0;
  bool directory = false;
  mode_t mode = 0644;
};

/// Packs the entries, sorted by path, into a tar.gz with owner 0 and time 0, so that equal input gives equal
/// bytes.
/// Errors: kInvalidArgument with E-CTX-PATH, E-CTX-DUPLICATE or E-CTX-LIMIT for anything that unpack would
/// refuse.
Result<std::string> pack_entries(std::vector<ArchiveEntry> entries, const ArchiveLimits& limits = {});

/// Reads a directory, less the built-in ignore rules and those of its own `.detignore`. Symbolic links to
/// files inside the directory are read as regular files. Other links and special files are errors
/// (kInvalidArgument, E-CTX-TYPE, with the path).
Result<std::vector<ArchiveEntry>> read_directory(const std::string& path, const ArchiveLimits& limits = {});

/// Reads a complete tar or tar.gz and validates every entry. Writes nothing to disk.
/// Errors: kInvalidArgument with one problem, which has the entry as its path:
///    E-CTX-FORMAT     damaged, truncated, or trailing bytes
///    E-CTX-PATH       absolute, "..", control character, backslash, not UTF-8, too long, too deep
///    E-CTX-TYPE       link, device, socket, fifo or sparse file
///    E-CTX-DUPLICATE  a path that occurs twice, or that differs from another only by case
///    E-CTX-LIMIT      size, ratio or count above `limits`
Result<std::vector<ArchiveItem>> check_archive(std::string_view bytes, const ArchiveLimits& limits = {});

/// Like check_archive, and returns the contents too.
Result<std::vector<ArchiveEntry>> read_archive(std::string_view bytes, const ArchiveLimits& limits = {});

/// Returns the content of a file of an archive that was checked before. Reads no further than its end.
/// Errors: kNotFound; kFailedPrecondition above `max_bytes`.
Result<std::string> read_archive_file(std::string_view bytes, const std::string& path,
                                      std::int64_t max_bytes);

/// Validates the whole archive, then extracts it into `target`, which is created and must be empty. Every
/// path component is opened relative to the target without following symbolic links. On failure the content
/// of `target` is removed. Errors: those of check_archive, kFailedPrecondition (`target` is not empty), I/O
/// errors.
Status unpack(std::string_view bytes, const std::string& target, const ArchiveLimits& limits = {});

}  // namespace det
