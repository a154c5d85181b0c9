// Section `checkpoint_storage`: location of checkpoints and how many are kept.
#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/expconf/sections.h"
#include "common/storage/location.h"

namespace det::expconf {
namespace {

constexpr const char* kWhich =
    "shared_fs: directory shared by all agents; directory: path in the task; s3: bucket";

std::vector<Field> with_common(std::vector<Field> fields) {
  fields.push_back(
      optional("name", text({.min = 1, .max = 128}),
               "storage of the cluster (`storages` of the master), which sets type and location"));
  const Type count = whole(0, 1'000'000);
  fields.push_back(
      defaulted("save_experiment_best", count, 0, "number of best checkpoints to keep across all trials"));
  fields.push_back(defaulted("save_trial_best", count, 1, "number of best checkpoints to keep per trial"));
  fields.push_back(
      defaulted("save_trial_latest", count, 1, "number of latest checkpoints to keep per trial"));
  return fields;
}

void check_kept(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  for (const char* name : {"save_experiment_best", "save_trial_best", "save_trial_latest"}) {
    if (resolved[name] != 0) return;
  }
  reader.warn(map, path, "E-CFG-CONFLICT", "no checkpoint is kept: all three save_* are 0");
}

void check_shared_fs(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_kept(reader, map, path, resolved);
  const Json host = resolved.value("host_path", Json()), below = resolved.value("storage_path", Json());
  if (!host.is_string() || !below.is_string()) return;
  // Lexical check only: the directory may not exist on the master.
  const std::filesystem::path root = std::filesystem::path(host.get<std::string>()).lexically_normal();
  const std::string inside =
      (root / below.get<std::string>()).lexically_normal().lexically_relative(root).generic_string();
  if (inside.empty() || inside == ".." || inside.starts_with("../")) {
    reader.problem(value_or_map(map, "storage_path"), child(path, "storage_path"), "E-CFG-SECURITY",
                   "must stay under host_path (" + host.get<std::string>() + "); use a relative directory");
  }
}

void check_s3(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_kept(reader, map, path, resolved);
  const auto given = [&](const char* name) {
    const Json value = resolved.value(name, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  const auto problem = [&](const char* name, const char* code, const std::string& message) {
    reader.problem(value_or_map(map, name), child(path, name), code, message);
  };
  if (const std::string wrong = storage::check_bucket_name(given("bucket"));
      !given("bucket").empty() && !wrong.empty())
    problem("bucket", "E-CFG-RANGE", wrong);
  if (const std::string wrong = storage::check_endpoint(given("endpoint_url"));
      !given("endpoint_url").empty() && !wrong.empty())
    problem("endpoint_url", "E-CFG-RANGE", wrong);
  for (const std::string& part : split(given("prefix"), '/')) {
    if (part != "." && part != "..") continue;
    problem("prefix", "E-CFG-SECURITY", "must not have \".\" or \"..\" between its slashes");
    break;
  }
  // A masked key comes from a displayed configuration that was submitted again.
  for (const auto& [one, other] : {std::pair{"access_key", "secret_key"}, {"secret_key", "access_key"}}) {
    if (given(one) == kSecretMask) {
      problem(one, "E-CFG-RANGE",
              "is the mask of a secret: give the key itself, or leave both keys to the environment");
    } else if (!given(one).empty() && map.find(other) == nullptr) {
      problem(one, "E-CFG-CONFLICT", std::string("needs ") + other + " beside it");
    }
  }
}

/// A kind of storage with its fields and checks. A new kind is one more entry of the list.
struct StorageKind {
  std::string name;
  Type type;
};
const std::vector<StorageKind>& storage_kinds() {
  static const std::vector<StorageKind> all{
      {"shared_fs",
       table(
           with_common(
               {required("type", choice({"shared_fs"}), kWhich),
                required("host_path", absolute_path(), "absolute path of the directory shared by all agents"),
                optional("storage_path", text({.min = 1}), "subdirectory of host_path"),
                defaulted("propagation", text(), "rprivate", "propagation of the mount in a container"),
                idle("container_path", text()), idle("checkpoint_path", text()),
                idle("tensorboard_path", text())}),
           check_shared_fs)},
      {"directory", table(with_common({required("type", choice({"directory"}), kWhich),
                                       required("container_path", absolute_path(),
                                                "absolute path of the checkpoint directory")}),
                          check_kept)},
      {"s3",
       table(with_common(
                 {required("type", choice({"s3"}), kWhich),
                  required("bucket", text({.min = 1}), "name of the bucket"),
                  optional("prefix", text({.max = 512}), "prefix of all object names"),
                  optional("endpoint_url", text({.min = 1}),
                           "http[s]://HOST[:PORT] of an S3-compatible store; default: Amazon S3"),
                  optional("access_key", text({.min = 1}), "default: AWS_ACCESS_KEY_ID of the environment"),
                  optional("secret_key", text({.min = 1}),
                           "default: AWS_SECRET_ACCESS_KEY of the environment")}),
             check_s3)}};
  return all;
}
/// Storages of Determined AI that are not available yet.
bool is_later(const std::string& name) { return name == "gcs" || name == "azure"; }

void refuse_kind(Reader& reader, const YamlNode& node, const std::string& path) {
  std::vector<std::string> names;
  for (const StorageKind& kind : storage_kinds()) names.push_back(kind.name);
  const std::string why =
      is_later(node.text)
          ? "'" + node.text + "' is not available yet in this version; available: " + join(names, ", ")
          : "must be one of " + join(names, ", ") + ", " + found(node) + did_you_mean(node.text, names);
  reader.problem(node, path, "E-CFG-ENUM", why);
}

/// The union of the fields of all kinds, for partial documents and the reference page.
std::vector<Field> storage_fields() {
  std::vector<std::string> names;
  for (const StorageKind& kind : storage_kinds()) names.push_back(kind.name);
  std::vector<Field> fields{required("type", choice(names), kWhich)};
  std::set<std::string> known{"type"};
  for (const StorageKind& kind : storage_kinds()) {
    for (const Field& own : kind.type.fields()) {
      // A field that one kind ignores may be a real field of another.
      if (own.doc == kIdle || !known.insert(own.name).second) continue;
      fields.push_back(own);
      if (!own.name.starts_with("save_")) fields.back().doc += "; of " + kind.name;
    }
  }
  for (const char* name : {"checkpoint_path", "tensorboard_path"}) fields.push_back(idle(name, text()));
  return fields;
}

Json read_storage(Reader& reader, const YamlNode& node, const std::string& path) {
  if (!node.is_map()) return wrong_type(reader, node, path, "a map");
  const YamlNode* type = node.find("type");
  if (type == nullptr || type->is_null()) {
    // An empty map defers the choice to the master.
    if (node.entries.empty()) return nullptr;
    if (reader.partial()) return table(storage_fields())(reader, node, path);
    // Without a cluster, a name is all that is known.
    if (node.find("name") != nullptr) return table(with_common({}), check_kept)(reader, node, path);
    reader.problem(node, child(path, "type"), "E-CFG-MISSING",
                   "is required: shared_fs, directory or s3; or set name to a storage of the cluster");
    return nullptr;
  }
  if (type->kind != YamlNode::Kind::kString)
    return wrong_type(reader, *type, child(path, "type"), "a string");
  for (const StorageKind& kind : storage_kinds()) {
    if (kind.name == type->text) return kind.type(reader, node, path);
  }
  refuse_kind(reader, *type, child(path, "type"));
  return nullptr;
}

}  // namespace

Type checkpoint_storage_type() { return {"map", read_storage, storage_fields()}; }

}  // namespace det::expconf
