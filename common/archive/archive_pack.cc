// Packing: walks a directory and writes a deterministic tar.gz.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "common/archive/archive.h"
#include "common/archive/archive_paths.h"
#include "common/archive/gzip.h"
#include "common/archive/tar.h"
#include "common/base/files.h"

namespace det {
namespace {

/// Collects the entries of a directory tree: names sorted, ignored paths skipped.
class DirectoryReader {
 public:
  DirectoryReader(const std::string& root, const ArchiveLimits& limits) : root_(root), limits_(limits) {}

  Result<std::vector<ArchiveEntry>> run() {
    char resolved[PATH_MAX];
    if (::realpath(root_.c_str(), resolved) == nullptr) return fail_errno(root_);
    // The trailing slash keeps "/data/model2" from passing as a path below "/data/model".
    real_root_ = std::string(resolved) + (std::strcmp(resolved, "/") == 0 ? "" : "/");
    if (path_exists(root_ + "/.detignore")) {
      TRY_ASSIGN(const std::string rules, read_file(root_ + "/.detignore", 1 << 20));
      rules_.add(rules);
    }
    // Depth-first in sorted order, so the result does not depend on the file system.
    TRY(read_directory_at(""));
    return std::move(entries_);
  }

 private:
  std::string full(const std::string& path) const { return path.empty() ? root_ : root_ + "/" + path; }

  Result<std::vector<std::string>> names_in(const std::string& path) const {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(full(path).c_str()), ::closedir);
    if (!directory) return fail_errno(full(path));
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(directory.get())) {
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
        names.emplace_back(entry->d_name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Status read_directory_at(const std::string& path) {
    TRY_ASSIGN(const std::vector<std::string> names, names_in(path));
    for (const std::string& name : names) TRY(read_one(path.empty() ? name : path + "/" + name));
    return {};
  }

  Status read_one(const std::string& path) {
    struct stat info {};
    if (::lstat(full(path).c_str(), &info) != 0) return fail_errno(full(path));
    // An ignored directory is not entered, so rules cannot re-include a path below it (as in gitignore).
    if (rules_.ignored(path, S_ISDIR(info.st_mode))) return {};
    if (S_ISLNK(info.st_mode)) TRY(follow_link(path, info));
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
      return refuse_entry("E-CTX-TYPE", path,
                          "is neither a file nor a directory; remove it or name it in .detignore");
    }
    if (static_cast<std::int64_t>(entries_.size()) >= limits_.entries) {
      return refuse_entry("E-CTX-LIMIT", path,
                          "more than " + std::to_string(limits_.entries) +
                              " files and directories; name what is not needed in .detignore");
    }
    ArchiveEntry entry{path, "", S_ISDIR(info.st_mode),
                       S_ISDIR(info.st_mode) || (info.st_mode & 0100) ? 0755u : 0644u};
    if (entry.directory) {
      entries_.push_back(std::move(entry));
      return read_directory_at(path);
    }
    // read_file stops at the remaining budget, so that the directory is never held in memory beyond the
    // limit.
    const std::int64_t room = limits_.unpacked_bytes - total_;
    Result<std::string> content = read_file(full(path), room);
    if (!content && content.error().code == Code::kResourceExhausted && info.st_size > room) {
      return refuse_entry("E-CTX-LIMIT", path,
                          "the files are larger than " + std::to_string(limits_.unpacked_bytes) +
                              " bytes in all; name what is not needed in .detignore");
    }
    if (!content) return tl::unexpected(std::move(content).error());
    entry.content = std::move(*content);
    total_ += static_cast<std::int64_t>(entry.content.size());
    entries_.push_back(std::move(entry));
    return {};
  }

  /// Replaces `info` by the link's target if that is a regular file inside the root; fails otherwise.
  Status follow_link(const std::string& path, struct stat& info) const {
    char resolved[PATH_MAX];
    if (::realpath(full(path).c_str(), resolved) == nullptr || ::stat(resolved, &info) != 0) {
      return refuse_entry("E-CTX-TYPE", path,
                          "is a symbolic link that leads nowhere; remove it or name it in .detignore");
    }
    if (S_ISREG(info.st_mode) && std::string_view(resolved).starts_with(real_root_)) return {};
    return refuse_entry("E-CTX-TYPE", path,
                        "is a symbolic link to a directory or out of this one; copy what it points to or "
                        "name it in .detignore");
  }

  const std::string root_;
  const ArchiveLimits limits_;
  std::string real_root_;
  IgnoreRules rules_ = builtin_ignore_rules();
  std::vector<ArchiveEntry> entries_;
  std::int64_t total_ = 0;
};

}  // namespace

Result<std::string> pack_entries(std::vector<ArchiveEntry> entries, const ArchiveLimits& limits) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  PathTable paths(limits);
  std::string bytes;
  std::int64_t content = 0;
  for (const ArchiveEntry& entry : entries) {
    // Applies the checks of unpack: the master must accept every archive that is built here.
    TRY(paths.add(entry.path, entry.directory));
    const std::int64_t size = entry.directory ? 0 : static_cast<std::int64_t>(entry.content.size());
    content += size;
    if (content > limits.unpacked_bytes) {
      return refuse_entry(
          "E-CTX-LIMIT", entry.path,
          "the files are larger than " + std::to_string(limits.unpacked_bytes) + " bytes in all");
    }
    const unsigned mode = entry.directory || (entry.mode & 0100) != 0 ? 0755 : 0644;
    bytes += tar::make_header(entry.directory ? entry.path + "/" : entry.path, size, mode, entry.directory);
    if (!entry.directory) bytes += entry.content + tar::padding(size);
  }
  bytes += tar::end_mark();
  std::string packed = gzip(bytes);
  const auto size = static_cast<std::int64_t>(packed.size());
  if (size > limits.packed_bytes) {
    return refuse_entry("E-CTX-LIMIT", "",
                        "packed, the files take " + std::to_string(size) + " bytes; " +
                            std::to_string(limits.packed_bytes) + " is the maximum");
  }
  // unpack would reject this ratio as a zip bomb.
  const auto unpacked = static_cast<std::int64_t>(bytes.size());
  if (unpacked > (1 << 20) && unpacked / limits.ratio > size) {
    return refuse_entry("E-CTX-LIMIT", "",
                        "the files shrink to less than 1/" + std::to_string(limits.ratio) +
                            " of their size, which looks like an attack when unpacked");
  }
  return packed;
}

Result<std::vector<ArchiveEntry>> read_directory(const std::string& path, const ArchiveLimits& limits) {
  return DirectoryReader(path, limits).run();
}

}  // namespace det
