// Ignore rules for uploads, in gitignore syntax. The last matching pattern wins. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace det {

/// An ordered list of patterns as in gitignore(5): `*`, `?`, `[a-z]`, `[!a]` and `**`; a leading or inner `/`
/// anchors at the root; a trailing `/` matches directories only; `!` negates; `#` starts a comment; `\`
/// escapes. A directory walk must not enter an ignored directory: paths below it are not matched by its
/// pattern.
class IgnoreRules {
 public:
  IgnoreRules() = default;
  /// Parses one pattern a line.
  explicit IgnoreRules(std::string_view text) { add(text); }
  /// Appends patterns, which take precedence over the existing ones.
  void add(std::string_view text);
  /// True if the path is ignored. `path` is relative to the root, '/' separated, without a leading or
  /// trailing '/'.
  bool ignored(std::string_view path, bool is_directory) const;

 private:
  struct Rule {
    std::string pattern;
    bool negated = false, directory_only = false, anchored = false;
  };
  std::vector<Rule> rules_;
};

/// Patterns that always apply: caches of Python and editors, `.git/`, Terraform files, `/shared_fs`.
IgnoreRules builtin_ignore_rules();

}  // namespace det
