// Owns tar archives of model directories: made the same bytes for the same content, and unpacked from
// strangers without a byte written outside the target. Regular files and directories only; nothing else is
// ever made.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ignore.h"
#include "base/result.h"

namespace det {

/// Defaults are those of the product's limits (promises §5).
struct ArchiveLimits {
  std::int64_t packed_bytes = 96LL << 20;
  std::int64_t unpacked_bytes = 512LL << 20;
  std::int64_t ratio = 100;  ///< unpacked may not exceed packed times this (checked beyond the first MiB)
  std::int64_t entries = 50'000;
  std::size_t path_bytes = 512;
  std::size_t component_bytes = 255;
  int depth = 32;
};

struct ArchiveEntry {
  std::string path;     ///< relative, with '/', normal form: no "", "." or ".." part
  std::string content;  ///< of a file
  bool directory = false;
  mode_t mode = 0644;  ///< kept as 0755 (directory or owner-executable) or 0644
};

/// What an archive holds, without the contents.
struct ArchiveItem {
  std::string path;
  std::int64_t size = 0;
  bool directory = false;
  mode_t mode = 0644;
};

struct PackedDirectory {
  std::string bytes;               ///< tar.gz
  std::vector<ArchiveItem> items;  ///< sorted by path
  std::int64_t file_count = 0;
  std::int64_t content_bytes = 0;  ///< of all files, unpacked
};

/// tar.gz of the entries sorted by path: owner 0, time 0, so equal input gives equal bytes.
/// Refuses (E-CTX-PATH, -DUPLICATE, -LIMIT) what unpack would refuse.
Result<std::string> pack_entries(std::vector<ArchiveEntry> entries, const ArchiveLimits& limits = {});

/// The directory's files, less the built-in ignores and those of its own `.detignore`. Symbolic links to
/// files inside the directory are packed as files; other links and special files are refused, by name.
Result<PackedDirectory> pack_directory(const std::string& path, const ArchiveLimits& limits = {});

/// The same entries pack_directory would pack, in memory, to be joined with others (`--include`).
Result<std::vector<ArchiveEntry>> read_directory(const std::string& path, const ArchiveLimits& limits = {});

/// Reads tar or tar.gz wholly and checks every entry; writes nothing. The failure is kInvalidArgument with
/// one problem whose path names the entry: E-CTX-FORMAT (damaged, cut, trailing bytes), E-CTX-PATH (absolute,
/// "..", control characters, backslash, not UTF-8, too long, too deep), E-CTX-TYPE (links, devices, sockets,
/// fifos, sparse files), E-CTX-DUPLICATE (the same path twice, also when only case differs), E-CTX-LIMIT
/// (sizes and counts).
Result<std::vector<ArchiveItem>> check_archive(std::string_view bytes, const ArchiveLimits& limits = {});

/// check_archive with contents.
Result<std::vector<ArchiveEntry>> read_archive(std::string_view bytes, const ArchiveLimits& limits = {});

/// Checks the whole archive, then writes it below `target`, which is made and must be empty. Every path is
/// resolved beneath the open directory, through no symbolic link. After a failure `target` is empty again.
Status unpack(std::string_view bytes, const std::string& target, const ArchiveLimits& limits = {});

}  // namespace det
