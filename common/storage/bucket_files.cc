// File transfers of the bucket client; large files go in parts.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/storage/bucket_call.h"

namespace det::storage {
namespace {

constexpr std::int64_t kMaxParts = 9000;  // S3's limit is 10,000

/// A byte range of the file with index `file`.
struct Piece {
  std::size_t file;
  std::int64_t offset, count;
};

Result<std::string> read_piece(const std::string& path, std::int64_t offset, std::int64_t count) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(path);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  for (std::int64_t done = 0; done < count;) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + done, static_cast<std::size_t>(count - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(path);
    if (got == 0) return fail(Code::kDataLoss, path + " became shorter while it was read");
    done += got;
  }
  return bytes;
}

Status write_piece(int file, std::string_view bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail_errno("a file of the checkpoint");
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += put;
  }
  return {};
}

/// Part size in bytes: at least `least`, and large enough to stay below S3's limit on parts.
std::int64_t part_size(std::int64_t size, std::int64_t least) {
  return std::max(least, size / kMaxParts + 1);
}

}  // namespace

/// A part of a multipart upload; `number` counts from 1.
struct Bucket::Part {
  std::string key, path, id;
  int number = 0;
  std::int64_t offset = 0, count = 0;
};

Status Bucket::put_files(const std::map<std::string, std::string>& files) const {
  std::vector<const std::pair<const std::string, std::string>*> small;
  for (const auto& file : files) {
    struct stat status {};
    if (::stat(file.second.c_str(), &status) != 0) return fail_errno(file.second);
    // Large files go one after another, each with parallel parts; small files go in parallel.
    if (status.st_size > options_.part) {
      TRY(put_large(file.first, file.second, status.st_size));
    } else {
      small.push_back(&file);
    }
  }
  return together(small.size(), [&](std::size_t i) { return put_small(small[i]->first, small[i]->second); });
}

Status Bucket::put_small(const std::string& key, const std::string& path) const {
  TRY_ASSIGN(const std::string content, read_file(path, options_.part));
  return put(key, content);
}

Status Bucket::put_large(const std::string& key, const std::string& path, std::int64_t size) const {
  TRY_ASSIGN(const std::string begun, call({.method = "POST", .key = key, .query = {{"uploads", ""}}}));
  TRY_ASSIGN(const std::string id, read_upload_id(begun));
  const std::int64_t part = part_size(size, options_.part);
  std::vector<std::string> tags(static_cast<std::size_t>((size + part - 1) / part));
  Status done = together(tags.size(), [&](std::size_t i) -> Status {
    const std::int64_t offset = static_cast<std::int64_t>(i) * part;
    TRY_ASSIGN(tags[i],
               put_part({key, path, id, static_cast<int>(i) + 1, offset, std::min(part, size - offset)}));
    return {};
  });
  if (done) done = complete(key, id, tags, size);
  // Aborts the upload: unfinished parts would be billed.
  if (!done) (void)call({.method = "DELETE", .key = key, .query = {{"uploadId", id}}});
  return done;
}

Result<std::string> Bucket::put_part(const Part& part) const {
  TRY_ASSIGN(const std::string bytes, read_piece(part.path, part.offset, part.count));
  std::map<std::string, std::string> headers;
  TRY(call({.method = "PUT",
            .key = part.key,
            .query = {{"partNumber", std::to_string(part.number)}, {"uploadId", part.id}},
            .body = bytes},
           &headers));
  // CompleteMultipartUpload needs the ETag of every part.
  const auto tag = headers.find("etag");
  if (tag == headers.end())
    return fail(Code::kDataLoss, name_of(part.key) + ": the store gave no ETag for a part");
  return tag->second;
}

Status Bucket::complete(const std::string& key, const std::string& id, const std::vector<std::string>& tags,
                        std::int64_t size) const {
  std::string body = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < tags.size(); ++i) {
    body += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + xml_escaped(tags[i]) +
            "</ETag></Part>";
  }
  body += "</CompleteMultipartUpload>";
  const auto done = call({.method = "POST",
                          .key = key,
                          .query = {{"uploadId", id}},
                          .headers = {{"content-type", "application/xml"}},
                          .body = body});
  if (done) return {};
  if (done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  // kNotFound: an earlier attempt succeeded but its response was lost. The object itself decides.
  std::map<std::string, std::string> headers;
  TRY(call({.method = "HEAD", .key = key}, &headers));
  if (headers["content-length"] == std::to_string(size)) return {};
  return tl::unexpected(done.error());
}

Status Bucket::get_files(const std::vector<Wanted>& files) const {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < files.size(); ++i) {
    // Creates each file at its full size, so that parts can be written at their offsets in any order.
    TRY(make_directories(std::filesystem::path(files[i].path).parent_path().string()));
    const UniqueFd file(::open(files[i].path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file || ::ftruncate(file.get(), files[i].size) != 0) return fail_errno(files[i].path);
    const std::int64_t part = part_size(files[i].size, options_.part);
    for (std::int64_t at = 0; at == 0 || at < files[i].size; at += part) {
      pieces.push_back({i, at, std::min(part, files[i].size - at)});
    }
  }
  return together(pieces.size(), [&](std::size_t i) {
    return get_part(files[pieces[i].file], pieces[i].offset, pieces[i].count);
  });
}

Status Bucket::get_part(const Wanted& file, std::int64_t offset, std::int64_t count) const {
  const UniqueFd out(::open(file.path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!out) return fail_errno(file.path);
  std::int64_t done = 0;
  Status written;
  Call request{.method = "GET", .key = file.key};
  // A whole object needs no Range header, which would fail with InvalidRange on an empty object.
  if (count < file.size)
    request.headers["range"] = "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + count - 1);
  request.rewind = [&] { done = 0; };
  request.sink = [&](std::string_view bytes) {
    // More bytes than requested: `done` > `count` marks the object as longer than expected.
    if (done + static_cast<std::int64_t>(bytes.size()) > count) return done = count + 1, false;
    written = write_piece(out.get(), bytes, offset + done);
    done += static_cast<std::int64_t>(bytes.size());
    return written.has_value();
  };
  std::map<std::string, std::string> headers;
  const auto got = call(request, &headers);
  if (!written) return tl::unexpected(written.error());
  const auto range = headers.find("content-range");
  // The total size in Content-Range must match the manifest too.
  const bool other = range != headers.end() && !range->second.ends_with("/" + std::to_string(file.size));
  if ((got && (done != count || other)) || done > count)
    return fail(Code::kDataLoss,
                name_of(file.key) + " has not the " + std::to_string(file.size) + " bytes of its manifest");
  if (!got && got.error().message.find("InvalidRange") != std::string::npos)
    return fail(Code::kDataLoss, name_of(file.key) + " is shorter than its manifest says");
  if (!got) return tl::unexpected(got.error());
  return {};
}

}  // namespace det::storage
