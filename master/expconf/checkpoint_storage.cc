// Owns the section `checkpoint_storage`: where checkpoints live and how many are kept; merged with the
// master's.
#include <filesystem>

#include "base/text.h"
#include "master/expconf/node.h"
#include "master/expconf/sections.h"

namespace det::expconf {
namespace {

std::vector<Field> with_common(std::vector<Field> fields) {
  fields.push_back(defaulted("save_experiment_best", whole(0, 1'000'000), 0));
  fields.push_back(defaulted("save_trial_best", whole(0, 1'000'000), 1));
  fields.push_back(defaulted("save_trial_latest", whole(0, 1'000'000), 1));
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
  const std::filesystem::path root = std::filesystem::path(host.get<std::string>()).lexically_normal();
  const std::string inside =
      (root / below.get<std::string>()).lexically_normal().lexically_relative(root).generic_string();
  if (inside.empty() || inside == ".." || inside.starts_with("../")) {
    reader.problem(value_or_map(map, "storage_path"), child(path, "storage_path"), "E-CFG-SECURITY",
                   "must stay under host_path (" + host.get<std::string>() + "); use a relative directory");
  }
}

/// A storage there is: its fields, and what they mean together. Adding a kind of storage is a line here.
struct Kind {
  std::string name;
  Type type;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"shared_fs",
       table(with_common(
                 {required("type", choice({"shared_fs"}), "shared_fs"),
                  required("host_path", absolute_path(), "the absolute directory that all agents share"),
                  optional("storage_path", text({.min = 1})), defaulted("propagation", text(), "rprivate"),
                  optional("container_path", text()), optional("checkpoint_path", text()),
                  optional("tensorboard_path", text())}),
             check_shared_fs)},
      {"directory", table(with_common({required("type", choice({"directory"}), "directory"),
                                       required("container_path", absolute_path(),
                                                "the absolute directory checkpoints go to")}),
                          check_kept)}};
  return all;
}
/// Storages of upstream that are not here yet.
bool is_later(const std::string& name) { return name == "s3" || name == "gcs" || name == "azure"; }

/// The user's map with what only the master's says. Where the types differ only the save_* are common.
YamlNode merge(const YamlNode& user, const Json& master) {
  YamlNode merged = user;
  const YamlNode* type = user.find("type");
  const bool same = type == nullptr || type->is_null() || master.value("type", Json()) == type->text;
  for (const auto& [key, value] : master.items()) {
    const YamlNode* given = user.find(key);
    if ((given != nullptr && !given->is_null()) || !(same || key.starts_with("save_"))) continue;
    std::erase_if(merged.entries, [&](const YamlEntry& entry) { return entry.key == key; });
    merged.entries.push_back({key, user.line, user.column, node_from_json(value, user.line, user.column)});
  }
  return merged;
}

void refuse_kind(Reader& reader, const YamlNode& node, const std::string& path) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  const std::string why =
      is_later(node.text)
          ? "'" + node.text + "' is not available yet in this version; available: " + join(names, ", ")
          : "must be one of " + join(names, ", ") + ", " + found(node) + did_you_mean(node.text, names);
  reader.problem(node, path, "E-CFG-ENUM", why);
}

Json read_storage(Reader& reader, const YamlNode& user, const std::string& path, const Json& master) {
  if (!user.is_map()) return wrong_type(reader, user, path, "a map");
  const YamlNode node = master.is_object() ? merge(user, master) : user;
  const YamlNode* type = node.find("type");
  if (type == nullptr || type->is_null()) {
    if (node.entries.empty()) return nullptr;  // the master decides later
    reader.problem(node, child(path, "type"), "E-CFG-MISSING", "is required: shared_fs or directory");
    return nullptr;
  }
  if (type->kind != YamlNode::Kind::kString)
    return wrong_type(reader, *type, child(path, "type"), "a string");
  for (const Kind& kind : kinds()) {
    if (kind.name == type->text) return kind.type(reader, node, path);
  }
  refuse_kind(reader, *type, child(path, "type"));
  return nullptr;
}

}  // namespace

Type checkpoint_storage_type(const Json& master_default) {
  return [master_default](Reader& reader, const YamlNode& node, const std::string& path) {
    return read_storage(reader, node, path, master_default);
  };
}

}  // namespace det::expconf
