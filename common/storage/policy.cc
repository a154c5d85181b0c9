#include "common/storage/policy.h"

#include <algorithm>
#include <filesystem>

#include "common/base/secret.h"
#include "common/base/text.h"

namespace det::storage {
namespace {

std::string text_in(const Json& map, const char* key) {
  const auto found = map.is_object() ? map.find(key) : map.end();
  return map.is_object() && found != map.end() && found->is_string() ? found->get<std::string>()
                                                                     : std::string();
}

std::string normalized(const std::string& path) {
  std::string text = std::filesystem::path(path).lexically_normal().generic_string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// Whether `path` is `base` or below it; both are normalized.
bool is_at_or_below(const std::string& path, const std::string& base) {
  return path == base || path.starts_with(base.ends_with('/') ? base : base + "/");
}

/// Whether a bucket's location is `base` or below its prefix.
bool is_at_or_below(const Location& at, const Location& base) {
  return at.bucket == base.bucket && to_lower(at.endpoint) == to_lower(base.endpoint) &&
         (base.prefix.empty() || is_at_or_below(at.prefix, base.prefix));
}

/// Reads a bucket's location without its keys.
Result<Location> location_in(const Json& storage) {
  TRY_ASSIGN(Location at, read_location(storage));
  // A part ".." would leave the prefix in stores that normalize keys.
  for (const std::string& part : split(at.prefix, '/')) {
    if (part == "." || part == "..")
      return fail(Code::kInvalidArgument, "checkpoint_storage.prefix: must not have \".\" or \"..\" parts");
  }
  return at;
}

std::string name_of(const Location& at) {
  return at.endpoint.empty() ? at.name()
                             : at.endpoint + "/" + at.bucket + (at.prefix.empty() ? "" : "/" + at.prefix);
}

/// Adds the directory or prefix of a workspace to a location.
Json in_workspace(Json location, std::int64_t workspace) {
  const std::string below = "workspace-" + std::to_string(workspace);
  const auto add = [&](const char* key) {
    const std::string now = text_in(location, key);
    location[key] = now.empty() ? below : now + "/" + below;
  };
  const std::string type = text_in(location, "type");
  add(type == "s3" ? "prefix" : type == "directory" ? "container_path" : "storage_path");
  return location;
}

}  // namespace

std::string directory_of(const Json& storage) {
  const std::string type = text_in(storage, "type");
  if (type == "directory") {
    const std::string path = text_in(storage, "container_path");
    return path.empty() ? "" : normalized(path);
  }
  const std::string root = text_in(storage, "host_path");
  if (type != "shared_fs" || root.empty()) return "";
  // An absolute storage_path replaces host_path, as in CheckpointStorage::root().
  return normalized((std::filesystem::path(root) / text_in(storage, "storage_path")).generic_string());
}

Result<Location> parse_bucket(const std::string& text) {
  const std::size_t scheme = text.find("://");
  Location at;
  std::string rest = scheme == text.npos ? "" : text.substr(scheme + 3);
  if (scheme != text.npos && text.substr(0, scheme) != "s3") {
    const std::size_t slash = rest.find('/');
    at.endpoint = text.substr(0, scheme + 3) + rest.substr(0, slash);
    rest = slash == rest.npos ? "" : rest.substr(slash + 1);
  }
  while (rest.ends_with('/')) rest.pop_back();
  const std::size_t slash = rest.find('/');
  at.bucket = rest.substr(0, slash);
  if (slash != rest.npos) at.prefix = rest.substr(slash + 1);
  if (!check_bucket_name(at.bucket).empty() || (!at.endpoint.empty() && !check_endpoint(at.endpoint).empty()))
    return fail(
        Code::kInvalidArgument,
        "\"" + text + "\" is not a bucket; expected s3://BUCKET/PREFIX or https://HOST/BUCKET/PREFIX");
  return at;
}

const NamedStorage* StoragePolicy::find(const std::string& name) const {
  const auto found =
      std::find_if(named.begin(), named.end(), [&](const NamedStorage& one) { return one.name == name; });
  return found == named.end() ? nullptr : &*found;
}

const NamedStorage* StoragePolicy::storage_of(const Json& storage) const {
  const std::string name = text_in(storage, "name");
  const std::string path = directory_of(storage);
  const auto at = is_bucket(storage) ? location_in(storage) : fail(Code::kInvalidArgument, "no bucket");
  for (const NamedStorage& one : named) {
    // Directories per workspace separate workspaces only if no configuration can name them by path.
    if (name.empty() ? one.per_workspace : one.name != name) continue;
    if (is_bucket(one.location) != is_bucket(storage)) continue;
    const auto base = is_bucket(one.location) ? location_in(one.location) : at;
    if (is_bucket(storage) ? at && base && is_at_or_below(*at, *base)
                           : !path.empty() && is_at_or_below(path, directory_of(one.location)))
      return &one;
  }
  return nullptr;
}

Result<Root> StoragePolicy::root_of(const Json& storage) const {
  const std::string path = directory_of(storage), name = text_in(storage, "name");
  if (path.empty() || path.front() != '/')
    return fail(Code::kFailedPrecondition, "the storage names no directory; " + allowed());
  std::vector<std::string> bases;
  const NamedStorage* one = storage_of(storage);
  if (one != nullptr) bases.push_back(directory_of(one->location));
  const std::string home = directory_of(own);
  if (name.empty()) {
    if (!home.empty()) bases.push_back(home);
    for (const std::string& base : directories) bases.push_back(normalized(base));
  }
  // The longest one: more of the path is an administrator's.
  std::string best;
  for (const std::string& base : bases) {
    if (is_at_or_below(path, base) && base.size() > best.size()) best = base;
  }
  const bool inner = !data_dir.empty() && is_at_or_below(path, normalized(data_dir)) &&
                     (home.empty() || !is_at_or_below(path, home));
  if (best.empty() || inner)
    return fail(Code::kFailedPrecondition, path +
                                               (name.empty() ? " is not in a storage of this cluster; "
                                                             : " is not in the storage \"" + name + "\"; ") +
                                               allowed());
  const std::size_t skip = best.size() + (best.ends_with('/') ? 0 : 1);
  return Root{best, path.size() > best.size() ? path.substr(skip) : ""};
}

Result<Location> StoragePolicy::bucket_of(const Json& storage) const {
  TRY_ASSIGN(Location at, location_in(storage));
  const NamedStorage* one = storage_of(storage);
  const std::string name = text_in(storage, "name");
  bool good = one != nullptr;
  if (name.empty()) {
    if (const auto home = is_bucket(own) ? location_in(own) : fail(Code::kNotFound, "no bucket"); home)
      good = good || is_at_or_below(at, *home);
    for (const Location& base : buckets) good = good || is_at_or_below(at, base);
  }
  if (!good)
    return fail(Code::kFailedPrecondition, name_of(at) +
                                               (name.empty() ? " is not a storage of this cluster; "
                                                             : " is not in the storage \"" + name + "\"; ") +
                                               allowed());
  if (one == nullptr) return at;
  return read_location(for_process(storage));
}

Status StoragePolicy::check(const Json& storage) const {
  // No layer names a storage; the master then has none of its own.
  if (!storage.is_object()) return {};
  if (is_bucket(storage)) {
    TRY(bucket_of(storage));
  } else {
    TRY(root_of(storage));
  }
  return {};
}

Result<Json> StoragePolicy::section_of(const std::string& name, std::int64_t workspace) const {
  const NamedStorage* one = find(name);
  if (one == nullptr) {
    std::vector<std::string> names;
    for (const NamedStorage& each : named) names.push_back(each.name);
    const std::string hint = did_you_mean(name, names);
    return fail(Code::kNotFound,
                "there is no storage \"" + make_utf8(name) + "\"" + (hint.empty() ? "; " + allowed() : hint));
  }
  Json section = one->per_workspace ? in_workspace(one->location, workspace) : one->location;
  section["name"] = one->name;
  return section;
}

Json StoragePolicy::for_process(Json storage) const {
  if (!storage.is_object()) return storage;
  const NamedStorage* one = storage_of(storage);
  // Other programs of the training process do not expect the field.
  storage.erase("name");
  const bool keys = !text_in(storage, "access_key").empty() && text_in(storage, "access_key") != kSecretMask;
  if (one == nullptr || one->access_key.empty() || keys) return storage;
  storage["access_key"] = one->access_key;
  storage["secret_key"] = one->secret_key;
  return storage;
}

std::string StoragePolicy::allowed() const {
  std::vector<std::string> names, places;
  for (const NamedStorage& one : named) names.push_back(one.name);
  for (const std::string& directory : directories) places.push_back(normalized(directory));
  for (const Location& bucket : buckets) places.push_back(name_of(bucket));
  std::vector<std::string> ways;
  if (own.is_object()) ways.push_back("leave checkpoint_storage out for the cluster's own storage");
  if (!names.empty()) ways.push_back("use a storage of the cluster as {name: ...}: " + join(names, ", "));
  if (!places.empty()) ways.push_back("name a location in " + join(places, ", "));
  if (names.empty() && places.empty()) ways.push_back("ask an administrator to create a storage");
  return join(ways, "; or ");
}

}  // namespace det::storage
