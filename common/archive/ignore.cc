#include "common/archive/ignore.h"

#include "common/base/text.h"

namespace det {
namespace {

/// Matches one pattern against one path by backtracking. Failed states are memoized, which bounds the work by
/// (pattern length) x (path length) steps for any pattern.
class Matcher {
 public:
  Matcher(std::string_view pattern, std::string_view path)
      : pattern_(pattern), path_(path), dead_((pattern.size() + 1) * (path.size() + 1), false) {}

  bool match(std::size_t p = 0, std::size_t t = 0) {
    const std::size_t state = p * (path_.size() + 1) + t;
    if (dead_[state]) return false;
    const bool matched = step(p, t);
    if (!matched) dead_[state] = true;
    return matched;
  }

 private:
  bool step(std::size_t p, std::size_t t) {
    if (p == pattern_.size()) return t == path_.size();
    if (pattern_[p] == '*') return star(p, t);
    if (t == path_.size()) return false;
    // An unclosed bracket is an ordinary character.
    if (pattern_[p] == '[') {
      std::size_t after = p;
      const int in_set = set(after, path_[t]);
      if (in_set >= 0) return in_set == 1 && path_[t] != '/' && match(after, t + 1);
    }
    if (pattern_[p] == '?') return path_[t] != '/' && match(p + 1, t + 1);
    if (pattern_[p] == '\\' && p + 1 < pattern_.size()) ++p;
    return pattern_[p] == path_[t] && match(p + 1, t + 1);
  }

  bool star(std::size_t p, std::size_t t) {
    const bool part_start = p == 0 || pattern_[p - 1] == '/';
    if (part_start && pattern_.substr(p) == "**") return true;
    if (part_start && pattern_.substr(p).starts_with("**/")) {
      // "**/" matches zero or more whole directories.
      if (match(p + 3, t)) return true;
      const std::size_t slash = path_.find('/', t);
      return slash != std::string_view::npos && match(p, slash + 1);
    }
    if (match(p + 1, t)) return true;
    return t < path_.size() && path_[t] != '/' && match(p, t + 1);
  }

  /// Evaluates the bracket expression at `p`: 1 if it contains `c`, 0 if not, -1 if it is not closed. Moves
  /// `p` behind it.
  int set(std::size_t& p, char c) const {
    std::size_t at = p + 1;
    const bool negated = at < pattern_.size() && (pattern_[at] == '!' || pattern_[at] == '^');
    if (negated) ++at;
    bool found = false;
    for (bool first = true;; first = false) {
      if (at >= pattern_.size()) return -1;
      // A "]" right after the opening bracket is a member of the set.
      if (pattern_[at] == ']' && !first) break;
      if (pattern_[at] == '\\' && at + 1 < pattern_.size()) ++at;
      const char low = pattern_[at++];
      char high = low;
      if (at + 1 < pattern_.size() && pattern_[at] == '-' && pattern_[at + 1] != ']') {
        high = pattern_[at + 1];
        at += 2;
      }
      if (low <= c && c <= high) found = true;
    }
    p = at + 1;
    return found != negated ? 1 : 0;
  }

  const std::string_view pattern_, path_;
  std::vector<bool> dead_;
};

}  // namespace

void IgnoreRules::add(std::string_view text) {
  for (std::string line : split(text, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    // Trailing spaces count only if escaped.
    while (line.ends_with(' ') && !line.ends_with("\\ ")) line.pop_back();
    if (line.empty() || line[0] == '#') continue;
    Rule rule;
    if (line[0] == '!') {
      rule.negated = true;
      line.erase(0, 1);
    }
    if (line.ends_with('/')) {
      rule.directory_only = true;
      line.pop_back();
    }
    // As in gitignore, a pattern without a slash matches the file name at any depth.
    rule.anchored = line.find('/') != std::string::npos;
    if (line.starts_with('/')) line.erase(0, 1);
    if (line.empty()) continue;
    rule.pattern = std::move(line);
    rules_.push_back(std::move(rule));
  }
}

bool IgnoreRules::ignored(std::string_view path, bool is_directory) const {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->directory_only && !is_directory) continue;
    // The last matching rule decides.
    if (Matcher(rule->pattern, rule->anchored ? path : name).match()) return !rule->negated;
  }
  return false;
}

IgnoreRules builtin_ignore_rules() {
  return IgnoreRules(
      "__pycache__/\n*.py[co]\n*$py.class\n"
      "terraform\nterraform_data\nterraform.tfstate*\nterraform.tfvars*\n.terraform*\n"
      ".git/\n.vscode/\n.idea/\n.mypy_cache/\n"
      "/shared_fs\n");
}

}  // namespace det
