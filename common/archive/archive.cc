#include "common/archive/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>

#include "common/archive/archive_paths.h"
#include "common/archive/gzip.h"
#include "common/archive/tar.h"
#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/base/text.h"

namespace det {
namespace {

std::string mebibytes(std::int64_t bytes) {
  return bytes % (1 << 20) == 0 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " bytes";
}

std::string_view type_name(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
      return "a symbolic link";
    case '3':
      return "a character device";
    case '4':
      return "a block device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    default:
      return "an entry of an unknown kind";
  }
}

/// Validates entries as they stream past. Only allowed entries reach the callbacks.
class Walk {
 public:
  using OnItem = std::function<Status(const ArchiveItem&)>;
  using OnContent = std::function<Status(std::string_view)>;

  Walk(std::string_view bytes, const ArchiveLimits& limits, OnItem on_item, OnContent on_content)
      : bytes_(bytes),
        limits_(limits),
        on_item_(std::move(on_item)),
        on_content_(std::move(on_content)),
        paths_(limits) {}

  Status run() {
    if (static_cast<std::int64_t>(bytes_.size()) > limits_.packed_bytes) {
      return refuse_entry("E-CTX-LIMIT", "", "the archive is larger than " + mebibytes(limits_.packed_bytes));
    }
    ByteSource source(bytes_);
    // Counts the bytes after decompression, so that the limits hold before any header is parsed.
    const tar::Source stream = [&]() -> Result<std::string_view> {
      TRY_ASSIGN(const std::string_view piece, source.next());
      streamed_ += static_cast<std::int64_t>(piece.size());
      TRY(check_stream());
      return piece;
    };
    Status read = tar::read(stream, {[&](const tar::Header& header) { return see(header); }, on_content_});
    if (!read && read.error().code == Code::kDataLoss)
      return refuse_entry("E-CTX-FORMAT", last_, read.error().message);
    return read;
  }

 private:
  /// Bounds the decompressed stream, tar headers included (up to 4 blocks an entry), independent of its
  /// content.
  Status check_stream() const {
    const std::int64_t overhead = limits_.entries * 4 * static_cast<std::int64_t>(tar::kBlock);
    if (streamed_ > limits_.unpacked_bytes + overhead) {
      return refuse_entry("E-CTX-LIMIT", last_, "unpacks to more than " + mebibytes(limits_.unpacked_bytes));
    }
    if (streamed_ > (1 << 20) && streamed_ / limits_.ratio > static_cast<std::int64_t>(bytes_.size())) {
      return refuse_entry("E-CTX-LIMIT", last_,
                          "unpacks to more than " + std::to_string(limits_.ratio) + " times its size");
    }
    return {};
  }

  Status see(const tar::Header& header) {
    last_ = header.path;
    if (header.type != '0' && header.type != '5') {
      return refuse_entry(
          "E-CTX-TYPE", header.path,
          "is " + std::string(type_name(header.type)) + "; only files and directories are allowed");
    }
    // Size and mode come from the archive. The mode is normalized below.
    ArchiveItem item{normal_path(header.path), header.size, header.type == '5', 0644};
    if (++entries_ > limits_.entries) {
      return refuse_entry("E-CTX-LIMIT", header.path,
                          "more than " + std::to_string(limits_.entries) + " entries");
    }
    if (item.directory && item.path.empty() && !header.path.empty()) return {};  // "./", the root itself
    TRY(paths_.add(item.path, item.directory));
    if (item.directory && item.size != 0)
      return refuse_entry("E-CTX-FORMAT", header.path, "a directory with content");
    // The declared size counts before the content is read, so that a huge entry fails at its header.
    unpacked_ += item.size;
    if (item.size > limits_.unpacked_bytes || unpacked_ > limits_.unpacked_bytes) {
      return refuse_entry("E-CTX-LIMIT", header.path,
                          "unpacks to more than " + mebibytes(limits_.unpacked_bytes));
    }
    if (item.directory || (header.mode & 0100) != 0) item.mode = 0755;
    return on_item_(item);
  }

  const std::string_view bytes_;
  const ArchiveLimits limits_;
  const OnItem on_item_;
  const OnContent on_content_;
  PathTable paths_;
  std::string last_;
  std::int64_t streamed_ = 0, unpacked_ = 0, entries_ = 0;
};

/// Writes entries below an open directory. Each step opens one path component with O_NOFOLLOW, so no path can
/// leave the root even if the target changes concurrently.
class Writer {
 public:
  explicit Writer(int root) : root_(root) {}

  Status begin(const ArchiveItem& item) {
    file_.reset();
    path_ = item.path;
    const std::size_t slash = item.path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : item.path.substr(0, slash);
    const std::string name = slash == std::string::npos ? item.path : item.path.substr(slash + 1);
    TRY_ASSIGN(const UniqueFd directory, open_directory(item.directory ? item.path : parent));
    if (item.directory) return {};
    // O_EXCL: a duplicate entry fails instead of overwriting the first one.
    file_.reset(::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         item.mode));
    if (!file_ || ::fchmod(file_.get(), item.mode) != 0) return fail_errno(path_);
    return {};
  }

  Status content(std::string_view piece) {
    Status written = write_all(file_.get(), piece);
    if (!written) written.error().message = path_ + ": " + written.error().message;
    return written;
  }

 private:
  Result<UniqueFd> open_directory(const std::string& path) const {
    UniqueFd at(::fcntl(root_, F_DUPFD_CLOEXEC, 0));
    if (!at) return fail_errno(path);
    if (path.empty()) return at;
    for (const std::string& name : split(path, '/')) {
      // mkdirat and openat operate on one component each: a symbolic link planted in between fails with
      // ELOOP.
      const bool made = ::mkdirat(at.get(), name.c_str(), 0755) == 0;
      if (!made && errno != EEXIST) return fail_errno(path);
      UniqueFd next(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next || (made && ::fchmod(next.get(), 0755) != 0)) return fail_errno(path);
      at = std::move(next);
    }
    return at;
  }

  const int root_;
  UniqueFd file_;
  std::string path_;
};

void empty_directory(const std::string& path) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    (void)remove_tree(entry.path().string());
}

}  // namespace

Result<std::vector<ArchiveItem>> check_archive(std::string_view bytes, const ArchiveLimits& limits) {
  std::vector<ArchiveItem> items;
  TRY(Walk(
          bytes, limits,
          [&](const ArchiveItem& item) {
            items.push_back(item);
            return Status{};
          },
          [](std::string_view) { return Status{}; })
          .run());
  return items;
}

Result<std::vector<ArchiveEntry>> read_archive(std::string_view bytes, const ArchiveLimits& limits) {
  std::vector<ArchiveEntry> entries;
  TRY(Walk(
          bytes, limits,
          [&](const ArchiveItem& item) {
            entries.push_back({item.path, "", item.directory, item.mode});
            return Status{};
          },
          [&](std::string_view piece) {
            entries.back().content += piece;
            return Status{};
          })
          .run());
  return entries;
}

Result<std::string> read_archive_file(std::string_view bytes, const std::string& path,
                                      std::int64_t max_bytes) {
  std::optional<std::string> content;
  const Status read =
      Walk(
          bytes, {},
          [&](const ArchiveItem& item) -> Status {
            // Ends the reading: the content is complete.
            if (content) return fail(Code::kCancelled, "");
            if (item.directory || item.path != path) return {};
            if (item.size > max_bytes)
              return fail(Code::kFailedPrecondition, "the file has more than " + mebibytes(max_bytes) +
                                                         "; download the code archive to read it");
            content.emplace();
            return {};
          },
          [&](std::string_view piece) {
            if (content) *content += piece;
            return Status{};
          })
          .run();
  if (!read && read.error().code != Code::kCancelled) return tl::unexpected(read.error());
  if (!content) return fail(Code::kNotFound, "the code archive has no such file; see its file_tree");
  return std::move(*content);
}

Status unpack(std::string_view bytes, const std::string& target, const ArchiveLimits& limits) {
  // The first pass rejects bad archives before anything is written; the second pass extracts.
  TRY(check_archive(bytes, limits));
  TRY(make_directories(target));
  const UniqueFd root(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail_errno(target);
  std::error_code error;
  if (!std::filesystem::is_empty(target, error) || error) {
    return fail(Code::kFailedPrecondition, target + ": the directory to unpack into is not empty");
  }
  Writer writer(root.get());
  Status written = Walk(
                       bytes, limits, [&](const ArchiveItem& item) { return writer.begin(item); },
                       [&](std::string_view piece) { return writer.content(piece); })
                       .run();
  if (!written) empty_directory(target);
  return written;
}

}  // namespace det
