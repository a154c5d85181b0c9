// Owns what a path in an archive may be, alone and beside the others. Pure; private to base/.
#pragma once

#include <map>
#include <string>

#include "base/archive.h"

namespace det {

/// One problem with code and entry, as an Error of kInvalidArgument.
tl::unexpected<Error> refuse_entry(const char* code, const std::string& entry, std::string message);

/// The normal form of a path as tar programs write it: leading "./" and a trailing "/" are dropped; "" is the
/// root itself.
std::string normal_path(std::string_view path);

/// Watches the entries of one archive; every entry is shown to it once, in any order.
class PathTable {
 public:
  explicit PathTable(const ArchiveLimits& limits) : limits_(limits) {}
  /// E-CTX-PATH, E-CTX-DUPLICATE or E-CTX-LIMIT; `path` is in normal form.
  Status add(const std::string& path, bool directory);

 private:
  struct Known {
    std::string path;
    bool directory;
    bool named;  ///< an entry of its own, not only the parent of one
  };
  Status add_known(const std::string& path, bool directory, bool named, const std::string& entry);
  const ArchiveLimits limits_;
  std::map<std::string, Known> known_;  ///< by lower-case path
};

}  // namespace det
