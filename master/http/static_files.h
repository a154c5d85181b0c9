// Static files of the web UI, read into a table at start. Requests are served from the table and never from
// disk, so path traversal is impossible.
#pragma once

#include <map>
#include <string>

#include "common/base/result.h"
#include "master/http/message.h"

namespace det::http {

/// Immutable after load(); thread-safe.
class StaticFiles {
 public:
  /// Reads all regular files below `directory` (at most 32 MiB each, 256 MiB in all; kResourceExhausted).
  /// "x.gz" beside "x" is its compressed form. A missing directory yields an empty table.
  static Result<StaticFiles> load(const std::string& directory);

  /// True when there is no web UI.
  bool empty() const { return files_.empty(); }
  /// Serves GET and HEAD. "/" redirects to /det/. A path below /det/ is looked up in the table and falls back
  /// to index.html when its last segment has no dot (a page of the UI). Every other path is 404.
  Response answer(const Request& request) const;

 private:
  /// One file, with its compressed form or "".
  struct File {
    std::string content, gzip, type, etag;
    /// The name contains a content hash: cache without revalidation.
    bool immutable = false;
  };
  /// Key: path relative to the directory.
  std::map<std::string, File> files_;
};

/// Security headers of every reply.
const Headers& security_headers();

}  // namespace det::http
