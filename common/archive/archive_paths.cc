#include "common/archive/archive_paths.h"

#include "common/base/text.h"

namespace det {
namespace {

/// Returns why the path is not allowed; "" if it is allowed.
std::string path_fault(const std::string& path, const ArchiveLimits& limits) {
  if (path.empty()) return "the name is empty";
  if (path.size() > limits.path_bytes)
    return "the path is longer than " + std::to_string(limits.path_bytes) + " bytes";
  if (find_bad_utf8(path)) return "the name is not UTF-8";
  if (has_control_characters(path)) return "the name holds a control character";
  if (path.find('\\') != std::string::npos) return "the name holds a backslash";
  if (path.front() == '/') return "the path is absolute; only paths below the directory are allowed";
  const std::vector<std::string> parts = split(path, '/');
  if (static_cast<int>(parts.size()) > limits.depth)
    return "deeper than " + std::to_string(limits.depth) + " directories";
  for (const std::string& part : parts) {
    if (part == "..") return "the path leaves the directory (\"..\")";
    if (part.empty() || part == ".") return "the path has an empty or \".\" part";
    if (part.size() > limits.component_bytes) {
      return "a name is longer than " + std::to_string(limits.component_bytes) + " bytes";
    }
  }
  return "";
}

/// Makes an untrusted name safe for terminals and JSON: valid UTF-8, no control characters, at most 600
/// bytes.
std::string printable(const std::string& name) {
  std::string text;
  for (const char c : make_utf8(std::string_view(name).substr(0, 600))) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return text;
}

}  // namespace

tl::unexpected<Error> refuse_entry(const char* code, const std::string& entry, std::string message) {
  return fail(std::vector<Problem>{{code, printable(entry), std::move(message), "", 0, 0}});
}

std::string normal_path(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  if (path == ".") return "";
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

Status PathTable::add(const std::string& path, bool directory) {
  if (const std::string fault = path_fault(path, limits_); !fault.empty())
    return refuse_entry("E-CTX-PATH", path, fault);
  // Registers each parent as a directory, which detects "a" (a file) beside "a/b".
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    TRY(add_known(path.substr(0, slash), true, false, path));
  }
  return add_known(path, directory, true, path);
}

Status PathTable::add_known(const std::string& path, bool directory, bool named, const std::string& entry) {
  const auto [found, added] = known_.try_emplace(to_lower(path), Known{path, directory, named});
  if (added) {
    // Implied directories count toward the limit too: they cost an inode each.
    if (static_cast<std::int64_t>(known_.size()) <= limits_.entries) return {};
    return refuse_entry("E-CTX-LIMIT", entry,
                        "more than " + std::to_string(limits_.entries) + " files and directories");
  }
  // The key is the lower-case path, so names that differ only by case meet here (case-insensitive file
  // systems).
  Known& other = found->second;
  if (other.path != path) {
    return refuse_entry("E-CTX-DUPLICATE", entry,
                        "differs only by case from \"" + printable(other.path) + "\"");
  }
  if (other.directory != directory)
    return refuse_entry("E-CTX-PATH", entry, "\"" + printable(path) + "\" is both a file and a directory");
  if (named && other.named) return refuse_entry("E-CTX-DUPLICATE", entry, "is in the archive twice");
  other.named = other.named || named;
  return {};
}

}  // namespace det
