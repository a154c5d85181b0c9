// Owns which files of a directory are not uploaded: gitignore's patterns, last match wins. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace det {

/// Patterns as in gitignore(5): `*`, `?`, `[a-z]`, `[!a]`, `**`, a leading or inner `/` anchors at the root,
/// a trailing `/` matches directories only, `!` takes back, `#` comments, `\` escapes. What lies below an
/// ignored directory is ignored: callers do not descend into one.
class IgnoreRules {
 public:
  IgnoreRules() = default;
  /// One pattern a line.
  explicit IgnoreRules(std::string_view text) { add(text); }
  void add(std::string_view text);
  /// `path` is relative to the root, with '/', without a leading or trailing one.
  bool ignored(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string pattern;
    bool negated = false, directory_only = false, anchored = false;
  };
  std::vector<Rule> rules_;
};

/// What is never uploaded: caches of Python and editors, `.git/`, terraform's files, `/shared_fs`.
IgnoreRules builtin_ignore_rules();

}  // namespace det
