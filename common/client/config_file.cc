#include "common/client/config_file.h"

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/yaml/yaml.h"

namespace det::cli {

Result<ConfigFile> read_config_file(const std::string& path) {
  ConfigFile config;
  if (path.empty() || !path_exists(path)) return config;
  TRY_ASSIGN(const std::string text, read_file(path, 64 << 10));
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, path));
  // A file of comments only is valid.
  if (root.is_null()) return config;
  std::vector<Problem> problems;
  const auto wrong = [&](const char* code, const std::string& key, const YamlEntry& at,
                         const std::string& why) {
    problems.push_back({code, key, why, path, at.line, at.column});
  };
  if (!root.is_map())
    return fail(Code::kInvalidArgument, path + ": must be a map such as `master: localhost:8080`");
  for (const YamlEntry& entry : root.entries) {
    if (entry.key != "master" && entry.key != "user") {
      wrong("E-CFG-UNKNOWN", entry.key, entry,
            "unknown setting" + did_you_mean(entry.key, {"master", "user"}));
    } else if (entry.value.kind != YamlNode::Kind::kString) {
      wrong("E-CFG-TYPE", entry.key, entry, "must be a string");
    } else {
      (entry.key == "master" ? config.master : config.user) = entry.value.text;
    }
  }
  // All problems are reported at once, each with its position.
  if (!problems.empty()) return fail(std::move(problems));
  return config;
}

std::string config_directory() {
  const std::string config = environment_variable("XDG_CONFIG_HOME"), home = environment_variable("HOME");
  if (!config.empty()) return config + "/det";
  if (!home.empty()) return home + "/.config/det";
  return "";
}

}  // namespace det::cli
