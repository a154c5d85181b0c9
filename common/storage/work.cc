#include "common/storage/work.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/files.h"
#include "common/storage/checkpoint_files.h"

namespace det::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTensorboard = "tensorboard/experiment_";
// Below the cluster's id.
constexpr std::string_view kPythonTensorboard = "tensorboard/experiment/", kMedia = "media/experiment/";
constexpr std::int64_t kManifestBytes = 16 << 20;

/// Directory of a name that may be removed, held open, and the entry in it.
struct Entry {
  PinnedRoot directory;
  std::string leaf;
};

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}
/// True for `<cluster id>/<prefix><number>`.
bool is_number_below_cluster(std::string_view name, std::string_view prefix) {
  const std::size_t slash = std::min(name.find('/'), name.size());
  const std::string_view rest = name.substr(std::min(slash + 1, name.size()));
  return parse_checkpoint_id(name.substr(0, slash)) && rest.starts_with(prefix) &&
         is_number(rest.substr(prefix.size()));
}

/// Returns the entry of a checkpoint, or of a directory of TensorBoard files or media; nothing for other
/// names, and where the directory above is absent or a link.
Result<std::optional<Entry>> entry_of(const PinnedRoot& root, const std::string& name) {
  std::string above = ".", leaf = name;
  if (!parse_checkpoint_id(name)) {
    if (!is_number_below_cluster(name, kPythonTensorboard) && !is_number_below_cluster(name, kMedia) &&
        !(name.starts_with(kTensorboard) && is_number(name.substr(kTensorboard.size()))))
      return std::nullopt;
    const std::size_t slash = name.rfind('/');
    above = name.substr(0, slash);
    leaf = name.substr(slash + 1);
  }
  auto directory = root.directory(above);
  if (directory) return Entry{std::move(*directory), std::move(leaf)};
  if (directory.error().code == Code::kNotFound || directory.error().code == Code::kFailedPrecondition)
    return std::nullopt;
  return tl::unexpected(directory.error());
}

bool there(const PinnedRoot& directory, const std::string& leaf) {
  struct stat status {};
  return ::fstatat(directory.fd(), leaf.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/// Removes a directory, or the link in its place. Returns false if it did not exist.
Result<bool> remove_one(const PinnedRoot& root, const std::string& shown, const std::string& name) {
  TRY_ASSIGN(const auto entry, entry_of(root, name));
  if (!entry) return false;
  const std::string hidden = entry->leaf + ".partial";
  const std::string hidden_path = entry->directory.path() + "/" + hidden;
  const bool was_there = there(entry->directory, entry->leaf);
  // rename fails if the target is a non-empty directory, so the rest of an interrupted removal goes first.
  if (there(entry->directory, hidden)) TRY(remove_tree(hidden_path));
  const int fd = entry->directory.fd();
  if (was_there && ::renameat(fd, entry->leaf.c_str(), fd, hidden.c_str()) != 0 && errno != ENOENT)
    return fail_errno(shown + "/" + name);
  TRY(remove_tree(hidden_path));
  return was_there;
}

/// Reads the owner from the manifest of a checkpoint.
Owner owner_of(const PinnedRoot& root, const CheckpointId& id) {
  const auto files = CheckpointFiles::open(root, id);
  const auto file = files ? files->file("manifest.json") : tl::unexpected(files.error());
  if (!file || file->size() > kManifestBytes) return {};
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < file->size()) {
    const auto piece = file->read(file->size() - static_cast<std::int64_t>(text.size()));
    if (!piece) return {};
    text += *piece;
  }
  const auto manifest = parse_json(text, {.bytes = static_cast<std::size_t>(kManifestBytes)});
  return manifest && manifest->is_object() ? read_owner(*manifest) : Owner{};
}

void find_all(const Work& work, const PinnedRoot& root, Done& done) {
  std::error_code error;
  for (fs::directory_iterator walk(root.path(), error), end; !error && walk != end; walk.increment(error)) {
    const auto id = parse_checkpoint_id(walk->path().filename().string());
    // A link is not a checkpoint.
    std::error_code ignored;
    if (!id || !fs::is_directory(walk->symlink_status(ignored))) continue;
    done.found.push_back({id->value, owner_of(root, *id)});
  }
  if (error) done.error = work.root.path() + ": " + error.message();
}

}  // namespace

Owner read_owner(const Json& manifest) {
  const Json* cluster = find_path(manifest, "owner.cluster");
  const Json* trial = find_path(manifest, "owner.trial");
  const Json* run = find_path(manifest, "owner.run");
  if (cluster == nullptr || !cluster->is_string() || trial == nullptr || !trial->is_number_integer() ||
      run == nullptr || !run->is_number_integer()) {
    return {};
  }
  return Owner{cluster->get<std::string>(), TrialId(trial->get<std::int64_t>()), run->get<RunNumber>()};
}

std::vector<std::string> tensorboard_names(const std::string& cluster_id, ExperimentId experiment) {
  const std::string number = std::to_string(experiment.value);
  return {std::string(kTensorboard) + number, cluster_id + "/" + std::string(kPythonTensorboard) + number};
}

std::string media_name(const std::string& cluster_id, ExperimentId experiment) {
  return cluster_id + "/" + std::string(kMedia) + std::to_string(experiment.value);
}
bool is_media_directory(std::string_view name) { return is_number_below_cluster(name, kMedia); }

Done perform(const Work& work) {
  Done done;
  const auto root = PinnedRoot::open(work.root);
  if (!root) {
    done.error = root.error().message;
    return done;
  }
  for (const std::string& name : work.remove) {
    const auto was_there = remove_one(*root, work.root.path(), name);
    // Continues after a failure; the first error is reported.
    if (!was_there) {
      if (done.error.empty()) done.error = was_there.error().message;
    } else {
      (*was_there ? done.removed : done.absent).push_back(name);
    }
  }
  if (work.list) find_all(work, *root, done);
  return done;
}

}  // namespace det::storage
