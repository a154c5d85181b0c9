#include "common/storage/work.h"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"

namespace det::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTensorboard = "tensorboard/experiment_";
constexpr std::int64_t kManifestBytes = 16 << 20;

/// True for a checkpoint UUID or a name of the form of tensorboard_name().
bool is_name(const std::string& name) {
  if (is_checkpoint_name(name)) return true;
  if (!name.starts_with(kTensorboard)) return false;
  const std::string number = name.substr(kTensorboard.size());
  return !number.empty() && number.find_first_not_of("0123456789") == number.npos;
}

bool there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

/// Removes a directory. Returns false if it did not exist.
Result<bool> remove_one(const std::string& path) {
  // Users can write to the storage: a symbolic link in place of "tensorboard" would redirect the removal.
  std::error_code error;
  if (fs::is_symlink(fs::path(path).parent_path(), error) && path.find(kTensorboard) != path.npos)
    return false;
  const std::string hidden = path + ".partial";
  const bool was_there = there(path);
  // rename fails if the target is a non-empty directory, so the rest of an interrupted removal goes first.
  if (there(hidden)) TRY(remove_tree(hidden));
  if (was_there && ::rename(path.c_str(), hidden.c_str()) != 0 && errno != ENOENT) return fail_errno(path);
  TRY(remove_tree(hidden));
  return was_there;
}

/// Reads the owner from the manifest of a checkpoint directory.
Owner owner_of(const std::string& directory) {
  const auto text = read_file(directory + "/manifest.json", kManifestBytes);
  if (!text) return {};
  const auto manifest = parse_json(*text, {.bytes = static_cast<std::size_t>(kManifestBytes)});
  return manifest && manifest->is_object() ? read_owner(*manifest) : Owner{};
}

void find_all(const Work& work, Done& done) {
  std::error_code error;
  for (fs::directory_iterator walk(work.root, error), end; !error && walk != end; walk.increment(error)) {
    const std::string name = walk->path().filename().string();
    std::error_code ignored;
    if (!is_checkpoint_name(name) || !walk->is_directory(ignored)) continue;
    done.found.push_back({name, owner_of(walk->path().string())});
  }
  if (error) done.error = work.root + ": " + error.message();
}

}  // namespace

bool is_checkpoint_name(std::string_view name) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (name.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = std::string_view("0123456789abcdefABCDEF").find(name[i]) != std::string_view::npos;
    if (kForm[i] == 'x' ? !digit : name[i] != '-') return false;
  }
  return true;
}

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

std::string tensorboard_name(ExperimentId experiment) {
  return std::string(kTensorboard) + std::to_string(experiment.value);
}

Done perform(const Work& work) {
  Done done;
  std::error_code error;
  if (!fs::is_directory(work.root, error)) {
    done.error = "the storage " + work.root + " is not there";
    return done;
  }
  for (const std::string& name : work.remove) {
    const auto was_there = is_name(name) ? remove_one(work.root + "/" + name) : Result<bool>(false);
    // Continues after a failure; the first error is reported.
    if (!was_there) {
      if (done.error.empty()) done.error = was_there.error().message;
    } else {
      (*was_there ? done.removed : done.absent).push_back(name);
    }
  }
  if (work.list) find_all(work, done);
  return done;
}

}  // namespace det::storage
