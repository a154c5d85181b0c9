#include "common/client/tokens.h"

#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/client/config_file.h"

namespace det::cli {
namespace {

// Format: {"version": 1, "masters": {"http://host:8080": {"last": "admin", "tokens": {"admin": "…"}}}}
constexpr int kTokenFileVersion = 1;

Json no_logins() { return {{"version", kTokenFileVersion}, {"masters", Json::object()}}; }

/// Returns the content of the file. Nothing when it is damaged, unreadable or of another format.
std::optional<Json> load_tokens(const std::string& path) {
  const auto text = read_file(path, 1 << 20);
  if (!text) return text.error().code == Code::kNotFound ? std::optional(no_logins()) : std::nullopt;
  auto json = parse_json(*text);
  if (!json || !json->is_object() || json->value("version", Json()) != kTokenFileVersion ||
      !json->contains("masters") || !json->at("masters").is_object())
    return std::nullopt;
  return *std::move(json);
}

/// Renames a file that is not readable as logins: it may hold logins of another version.
Status set_aside(const std::string& path) {
  const std::string kept = path + ".unreadable";
  std::error_code failed;
  std::filesystem::rename(path, kept, failed);
  if (failed)
    return fail(Code::kFailedPrecondition, path + " is not readable as logins, and cannot be moved away (" +
                                               failed.message() + "); remove it");
  std::cerr << path << " was not readable as logins; moved to " << kept << '\n';
  return {};
}

/// Makes one change under the lock. The lock is a separate file, because the file itself is replaced.
Status change_tokens(const std::string& path, const std::function<void(Json& masters)>& edit) {
  if (path.empty())
    return fail(Code::kFailedPrecondition, "no place for logins: set HOME or XDG_CONFIG_HOME");
  TRY(make_directories(std::filesystem::path(path).parent_path().string(), 0700));
  TRY_ASSIGN(const FileLock lock, FileLock::lock(path + ".lock"));
  std::optional<Json> json = load_tokens(path);
  if (!json) {
    TRY(set_aside(path));
    json = no_logins();
  }
  edit((*json)["masters"]);
  return write_file_atomic(path, dump_json(*json, 2) + "\n", 0600);
}

}  // namespace

std::string TokenFile::default_path() {
  const std::string directory = config_directory();
  return directory.empty() ? "" : directory + "/auth.json";
}

Result<std::optional<Login>> TokenFile::find(const std::string& master, const std::string& user) const {
  if (path_.empty()) return std::nullopt;
  const std::optional<Json> json = load_tokens(path_);
  if (!json) {
    std::cerr << path_ << " is not readable as logins; ignored\n";
    return std::nullopt;
  }
  // The types are checked at each step: the file may have been edited by hand.
  const Json entry = json->at("masters").value(master, Json::object());
  if (!entry.is_object()) return std::nullopt;
  const Json name = user.empty() ? entry.value("last", Json()) : Json(user);
  const Json tokens = entry.value("tokens", Json::object());
  if (!name.is_string() || !tokens.is_object()) return std::nullopt;
  const Json token = tokens.value(name.get<std::string>(), Json());
  if (!token.is_string()) return std::nullopt;
  return Login{name.get<std::string>(), token.get<std::string>()};
}

Status TokenFile::save(const std::string& master, const Login& login) {
  return change_tokens(path_, [&](Json& masters) {
    Json& entry = masters[master];
    if (!entry.is_object()) entry = Json::object();
    entry["last"] = login.user;
    entry["tokens"][login.user] = login.token;
  });
}

Status TokenFile::forget(const std::string& master, const std::string& user) {
  if (!path_exists(path_)) return {};
  return change_tokens(path_, [&](Json& masters) {
    if (user.empty()) {
      masters.erase(master);
    } else if (masters.contains(master) && masters[master].contains("tokens")) {
      masters[master]["tokens"].erase(user);
    }
  });
}

}  // namespace det::cli
