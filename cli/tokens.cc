#include "cli/tokens.h"

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json.h"
#include "cli/config_file.h"

namespace det::cli {
namespace {

// {"version": 1, "masters": {"http://host:8080": {"last": "admin", "tokens": {"admin": "…"}}}}
constexpr int kVersion = 1;

Result<Json> load(const std::string& path) {
  const Json nothing = {{"version", kVersion}, {"masters", Json::object()}};
  auto text = read_file(path, 1 << 20);
  if (!text) {
    if (text.error().code == Code::kNotFound) return nothing;
    return tl::unexpected(text.error());
  }
  auto json = parse_json(*text);
  if (!json || !json->is_object() || json->value("version", Json()) != kVersion ||
      !json->contains("masters") || !json->at("masters").is_object()) {
    return fail(Code::kFailedPrecondition, path + " is not readable as logins; remove it and log in again");
  }
  return *json;
}

Status change(const std::string& path, const std::function<void(Json& masters)>& edit) {
  if (path.empty())
    return fail(Code::kFailedPrecondition, "no place for logins: set HOME or XDG_CONFIG_HOME");
  TRY(make_directories(std::filesystem::path(path).parent_path().string(), 0700));
  TRY_ASSIGN(const FileLock lock, FileLock::lock(path + ".lock"));
  TRY_ASSIGN(Json json, load(path));
  edit(json["masters"]);
  return write_file_atomic(path, dump_json(json, 2) + "\n", 0600);
}

}  // namespace

std::string TokenFile::default_path() {
  const std::string directory = config_directory();
  return directory.empty() ? "" : directory + "/auth.json";
}

Result<std::optional<Login>> TokenFile::find(const std::string& master, const std::string& user) const {
  if (path_.empty()) return std::nullopt;
  TRY_ASSIGN(const Json json, load(path_));
  const Json entry = json.at("masters").value(master, Json::object());
  if (!entry.is_object()) return std::nullopt;
  const Json name = user.empty() ? entry.value("last", Json()) : Json(user);
  const Json tokens = entry.value("tokens", Json::object());
  if (!name.is_string() || !tokens.is_object()) return std::nullopt;
  const Json token = tokens.value(name.get<std::string>(), Json());
  if (!token.is_string()) return std::nullopt;
  return Login{name.get<std::string>(), token.get<std::string>()};
}

Status TokenFile::save(const std::string& master, const Login& login) {
  return change(path_, [&](Json& masters) {
    Json& entry = masters[master];
    if (!entry.is_object()) entry = Json::object();
    entry["last"] = login.user;
    entry["tokens"][login.user] = login.token;
  });
}

Status TokenFile::forget(const std::string& master, const std::string& user) {
  if (!path_exists(path_)) return {};
  return change(path_, [&](Json& masters) {
    if (user.empty()) {
      masters.erase(master);
    } else if (masters.contains(master) && masters[master].contains("tokens")) {
      masters[master]["tokens"].erase(user);
    }
  });
}

}  // namespace det::cli
