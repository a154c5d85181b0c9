#include "master/config/storages.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/expconf/parse.h"

namespace det {
namespace {

void refuse_storage(std::vector<Problem>& problems, const std::string& path, const std::string& message) {
  problems.push_back({.code = "E-CFG-VALUE", .path = path, .message = message});
}

bool is_storage_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  return !name.empty() && name.size() <= 64 && name.find_first_not_of(kAllowed) == name.npos;
}

/// Removes a text member of a map and returns it; "" without one.
std::string take_text(Json& map, const char* key) {
  const auto found = map.find(key);
  if (found == map.end() || !found->is_string()) return "";
  std::string text = found->get<std::string>();
  map.erase(key);
  return text;
}

/// Reads {name, per_workspace} and the location fields of `checkpoint_storage`.
storage::NamedStorage read_storage(const YamlNode& item, const std::string& path,
                                   std::vector<Problem>& problems) {
  storage::NamedStorage storage;
  if (!item.is_map()) {
    refuse_storage(problems, path, "must be a map of name, type and location");
    return storage;
  }
  storage.location = to_json(item);
  storage.name = take_text(storage.location, "name");
  if (!is_storage_name(storage.name))
    refuse_storage(problems, path + ".name",
                   "is required: 1 to 64 lower-case letters, digits, hyphens, underscores and dots");
  if (const YamlNode* own = item.find("per_workspace")) {
    storage.per_workspace = own->boolean;
    storage.location.erase("per_workspace");
    if (own->kind != YamlNode::Kind::kBool)
      refuse_storage(problems, path + ".per_workspace", "must be true or false");
  }
  for (const char* field : {"save_experiment_best", "save_trial_best", "save_trial_latest"}) {
    if (storage.location.contains(field))
      refuse_storage(problems, path + "." + field, "belongs to checkpoint_storage, not to a storage");
  }
  // The fields of a storage are those of the section; the check of a whole section needs its type.
  const auto checked = expconf::check_part(to_yaml({{"checkpoint_storage", storage.location}}), "");
  if (!checked) {
    for (const Problem& problem : checked.error().problems)
      refuse_storage(problems, path + problem.path.substr(std::string_view("checkpoint_storage").size()),
                     problem.message);
  } else if (!storage::is_bucket(storage.location) && storage::directory_of(storage.location).empty()) {
    refuse_storage(problems, path,
                   "needs type shared_fs with host_path, directory with container_path, or s3 with "
                   "bucket");
  } else if (storage::is_bucket(storage.location) && !storage::read_location(storage.location)) {
    refuse_storage(problems, path + ".bucket", "is required");
  }
  storage.access_key = take_text(storage.location, "access_key");
  storage.secret_key = take_text(storage.location, "secret_key");
  return storage;
}

}  // namespace

storage::StoragePolicy read_storages(const Options& options, const Json& own, const std::string& data_dir,
                                     std::vector<Problem>& problems) {
  storage::StoragePolicy policy{
      .own = own, .data_dir = data_dir, .directories = {}, .buckets = {}, .named = {}};
  for (const std::string& piece : split(options.text("allowed_storage_paths"), ',')) {
    const std::string path(trim(piece));
    if (path.empty()) continue;
    if (!path.starts_with('/'))
      refuse_storage(problems, "allowed_storage_paths", "must be absolute directories, got " + path);
    policy.directories.push_back(path);
  }
  for (const std::string& piece : split(options.text("allowed_storage_buckets"), ',')) {
    const std::string text(trim(piece));
    if (text.empty()) continue;
    const auto bucket = storage::parse_bucket(text);
    if (!bucket) refuse_storage(problems, "allowed_storage_buckets", bucket.error().message);
    if (bucket) policy.buckets.push_back(*bucket);
  }
  const YamlNode* tree = options.tree("storages");
  if (tree == nullptr) return policy;
  if (!tree->is_list())
    refuse_storage(problems, "storages", "must be a list of maps with name, type and location");
  for (std::size_t i = 0; i < tree->items.size(); ++i) {
    const std::string path = "storages[" + std::to_string(i) + "]";
    storage::NamedStorage storage = read_storage(tree->items[i], path, problems);
    if (std::any_of(policy.named.begin(), policy.named.end(),
                    [&](const auto& one) { return one.name == storage.name; }))
      refuse_storage(problems, path + ".name", storage.name + " is there twice");
    policy.named.push_back(std::move(storage));
  }
  std::sort(policy.named.begin(), policy.named.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return policy;
}

}  // namespace det
