#include "cli/submit/code_archive.h"

#include <filesystem>
#include <set>

#include "common/base/files.h"

namespace det::cli {
namespace fs = std::filesystem;
namespace {

/// Returns the last component, also for ".", ".." and paths that end with a slash.
std::string base_name(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

Status require_directory(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  return fail(Code::kInvalidArgument, path +
                                          (fs::exists(path, error) ? " is no directory" : " does not exist") +
                                          "; name the directory with your model's files");
}

/// Reads one --include: a file, or a directory with everything below it.
Result<std::vector<ArchiveEntry>> read_included(const std::string& path) {
  std::error_code error;
  const std::string name = base_name(path);
  if (!fs::is_directory(path, error)) {
    auto content = read_file(path, ArchiveLimits{}.unpacked_bytes);
    if (!content) return fail(Code::kInvalidArgument, "--include " + content.error().message);
    // An archive keeps only the executable bit of a mode (common/archive/archive.h).
    const bool runs = (fs::status(path, error).permissions() & fs::perms::owner_exec) != fs::perms::none;
    return std::vector<ArchiveEntry>{{name, std::move(*content), false, runs ? 0755u : 0644u}};
  }
  TRY_ASSIGN(std::vector<ArchiveEntry> entries, read_directory(path));
  for (ArchiveEntry& entry : entries) entry.path = name + "/" + entry.path;
  entries.insert(entries.begin(), {name, "", true, 0755});
  return entries;
}

}  // namespace

Result<std::vector<ArchiveEntry>> read_code_entries(const std::string& directory,
                                                    const std::vector<std::string>& includes) {
  std::vector<ArchiveEntry> entries;
  if (!directory.empty()) {
    TRY(require_directory(directory));
    TRY_ASSIGN(entries, read_directory(directory));
  }
  // Two entries of one name would overwrite each other when the archive is unpacked.
  std::set<std::string> roots;
  for (const ArchiveEntry& entry : entries) roots.insert(entry.path.substr(0, entry.path.find('/')));
  for (const std::string& include : includes) {
    if (!roots.insert(base_name(include)).second)
      return fail(Code::kInvalidArgument, "--include " + include + ": the code archive already has a \"" +
                                              base_name(include) + "\"; rename one of them");
    TRY_ASSIGN(auto more, read_included(include));
    entries.insert(entries.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return entries;
}

Result<CodeArchive> pack_code_archive(const std::string& directory,
                                      const std::vector<std::string>& includes) {
  TRY_ASSIGN(std::vector<ArchiveEntry> entries, read_code_entries(directory, includes));
  CodeArchive archive;
  for (const ArchiveEntry& entry : entries) {
    if (entry.directory) continue;
    archive.files.push_back(entry.path);
    archive.content_bytes += static_cast<std::int64_t>(entry.content.size());
  }
  TRY_ASSIGN(archive.bytes, pack_entries(std::move(entries)));
  return archive;
}

std::string shown_directory(const std::string& directory) {
  const fs::path normal = fs::path(directory).lexically_normal();
  if (normal != "." && normal != "./") return directory;
  return "../" + base_name(".");
}

}  // namespace det::cli
