// Owns the files of the web UI: a table read once at start. A request is answered from the table, never from
// the disk, so no path can escape.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "master/http/message.h"

namespace det::http {

class StaticFiles {
 public:
  /// Reads every regular file below `directory` (32 MiB each, 256 MiB in all); `x.gz` beside `x` is its
  /// compressed form. A directory that is absent gives an empty table.
  static Result<StaticFiles> load(const std::string& directory);

  bool empty() const { return files_.empty(); }
  /// GET and HEAD: "/" leads to /det/; /det/… is the table, and index.html where the table has no such file
  /// and the last part of the path has no dot (pages of the UI). Anything else is 404.
  Response answer(const Request& request) const;

 private:
  struct File {
    std::string content, gzip, type, etag;
    bool immutable = false;  ///< its name carries a hash
  };
  std::map<std::string, File> files_;  ///< by path below the directory
};

/// Headers that every answer of the master carries.
const Headers& security_headers();

}  // namespace det::http
