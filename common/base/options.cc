#include "common/base/options.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/units.h"

extern char** environ;

namespace det {
namespace {

/// `db.host` becomes "--db-host".
std::string flag_name(const std::string& key) {
  std::string name = key;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '_'; }, '-');
  return "--" + name;
}

/// `db.host` becomes "DET_DB_HOST".
std::string env_name(const OptionTable& table, const std::string& key) {
  std::string name = to_upper(key);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return table.env_prefix + name;
}

std::string_view form_of(OptionKey::Kind kind) {
  switch (kind) {
    case OptionKey::Kind::kString:
      return "TEXT";
    case OptionKey::Kind::kInt:
      return "N";
    case OptionKey::Kind::kBool:
      return "[=true|false]";
    case OptionKey::Kind::kBytes:
      return "SIZE";
    case OptionKey::Kind::kDuration:
      return "TIME";
    case OptionKey::Kind::kTree:
      return "YAML";
  }
  return "TEXT";
}

/// Parses the text by kind: integer, 0 or 1, bytes, or microseconds. Returns 0 for strings and trees.
Result<std::int64_t> read_number(OptionKey::Kind kind, const std::string& text) {
  switch (kind) {
    case OptionKey::Kind::kString:
    case OptionKey::Kind::kTree:
      return 0;
    case OptionKey::Kind::kInt: {
      char* end = nullptr;
      errno = 0;
      const long long value = std::strtoll(text.c_str(), &end, 10);
      if (text.empty() || *end != '\0' || errno == ERANGE || text[0] == ' ') {
        return fail(Code::kInvalidArgument, "must be an integer, got \"" + text + "\"");
      }
      return value;
    }
    case OptionKey::Kind::kBool:
      if (text == "true" || text == "false") return text == "true" ? 1 : 0;
      return fail(Code::kInvalidArgument, "must be true or false, got \"" + text + "\"");
    case OptionKey::Kind::kBytes:
      return parse_bytes(text);
    case OptionKey::Kind::kDuration: {
      TRY_ASSIGN(const Duration duration, parse_duration(text));
      return duration.count();
    }
  }
  return 0;
}

}  // namespace

/// Fills an Options layer by layer and collects all problems.
class OptionLoader {
 public:
  explicit OptionLoader(const OptionTable& table) : table_(table) {
    for (const OptionKey& key : table.keys) {
      if (key.kind != OptionKey::Kind::kTree) put(key, key.default_value, "", 0, 0, false);
    }
  }

  Result<Options> load(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& environment) {
    read_arguments(arguments);
    // Help, version and sample work with a broken configuration file too.
    if (options_.help_ || options_.version_ || options_.sample_) return std::move(options_);
    // Applied in order of precedence: each layer overwrites the one before.
    if (!file_.empty()) TRY(read_file_layer());
    read_environment(environment);
    for (const auto& [key, text] : flags_) put(*key, text, flag_name(key->name), 0, 0, true);
    if (!problems_.empty()) return fail(std::move(problems_));
    return std::move(options_);
  }

 private:
  const OptionKey* find(std::string_view name) const {
    for (const OptionKey& key : table_.keys) {
      if (key.name == name) return &key;
    }
    return nullptr;
  }

  /// Records a problem. The file name is added for problems with a line.
  void problem(const char* code, const std::string& path, std::string message, int line = 0, int column = 0) {
    problems_.push_back({code, path, std::move(message), line > 0 ? file_ : "", line, column});
  }

  /// Parses and stores a value. `source` names the flag or variable in problems; "" uses the key.
  void put(const OptionKey& key, const std::string& text, const std::string& source, int line, int column,
           bool set) {
    const Result<std::int64_t> number = read_number(key.kind, text);
    if (!number) {
      problem("E-CFG-TYPE", source.empty() ? key.name : source, number.error().message, line, column);
      return;
    }
    options_.values_.insert_or_assign(key.name, Options::Value{key.kind, text, *number, set});
  }

  void read_arguments(const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      const std::size_t equals = argument.find('=');
      const std::string name = argument.substr(0, equals);
      if (name == "--help" || name == "-h") {
        options_.help_ = true;
      } else if (name == "--version") {
        options_.version_ = true;
      } else if (name == "--sample-config") {
        options_.sample_ = true;
      } else {
        read_flag(name,
                  equals == std::string::npos ? std::nullopt : std::optional(argument.substr(equals + 1)),
                  arguments, i);
      }
    }
  }

  /// Parses `--key value` or `--key=value`. Advances `i` if the value is the next argument.
  void read_flag(const std::string& name, std::optional<std::string> value,
                 const std::vector<std::string>& arguments, std::size_t& i) {
    std::vector<std::string> names{"--config", "--help", "--version", "--sample-config"};
    const OptionKey* key = nullptr;
    for (const OptionKey& candidate : table_.keys) {
      if (candidate.kind == OptionKey::Kind::kTree) continue;
      names.push_back(flag_name(candidate.name));
      if (names.back() == name) key = &candidate;
    }
    if (key == nullptr && name != "--config") {
      problem("E-CFG-UNKNOWN", name, "unknown argument" + did_you_mean(name, names));
      // Skips the value of an unknown flag, so that it is not reported as a second problem.
      if (!value && name.starts_with("--") && i + 1 < arguments.size() && !arguments[i + 1].starts_with("-"))
        ++i;
      return;
    }
    // A boolean flag never consumes the next argument.
    if (!value && key != nullptr && key->kind == OptionKey::Kind::kBool) value = "true";
    if (!value && i + 1 < arguments.size()) value = arguments[++i];
    if (!value) {
      problem("E-CFG-MISSING", name, "needs a value");
    } else if (key == nullptr) {
      file_ = *value;
    } else {
      flags_.emplace_back(key, *value);
    }
  }

  Status read_file_layer() {
    TRY_ASSIGN(const std::string text, read_file(file_, 1 << 20));
    TRY_ASSIGN(const YamlNode root, parse_yaml(text, file_));
    if (root.is_null()) return {};
    if (!root.is_map()) {
      problem("E-CFG-TYPE", "", "the top level must be a map, found " + std::string(kind_name(root.kind)),
              root.line, root.column);
      return {};
    }
    read_map(root, "");
    return {};
  }

  /// Walks a map of the file. `prefix` is the dotted path with a trailing dot, or "".
  void read_map(const YamlNode& map, const std::string& prefix) {
    for (const YamlEntry& entry : map.entries) {
      const std::string name = prefix + entry.key;
      const OptionKey* key = find(name);
      if (key != nullptr && key->kind == OptionKey::Kind::kTree) {
        options_.trees_.insert_or_assign(name, entry.value);
      } else if (key != nullptr) {
        read_scalar(*key, entry);
      } else if (is_section(name)) {
        read_section(entry, name);
      } else {
        problem("E-CFG-UNKNOWN", name, "unknown key" + did_you_mean(entry.key, siblings(prefix)), entry.line,
                entry.column);
      }
    }
  }

  void read_section(const YamlEntry& entry, const std::string& name) {
    if (entry.value.is_map()) {
      read_map(entry.value, name + ".");
    } else if (!entry.value.is_null()) {
      problem("E-CFG-TYPE", name, "must be a map, found " + std::string(kind_name(entry.value.kind)),
              entry.value.line, entry.value.column);
    }
  }

  void read_scalar(const OptionKey& key, const YamlEntry& entry) {
    if (entry.value.is_null()) return;  // `key:` without a value keeps the default
    if (entry.value.is_list() || entry.value.is_map()) {
      problem("E-CFG-TYPE", key.name, "must be one value, found " + std::string(kind_name(entry.value.kind)),
              entry.value.line, entry.value.column);
      return;
    }
    put(key, entry.value.text, "", entry.value.line, entry.value.column, true);
  }

  /// True if `name` is a prefix of some key, so that a map is expected there.
  bool is_section(const std::string& name) const {
    return std::any_of(table_.keys.begin(), table_.keys.end(),
                       [&](const OptionKey& key) { return key.name.starts_with(name + "."); });
  }

  /// The key names at this level of the file, for "did you mean".
  std::vector<std::string> siblings(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const OptionKey& key : table_.keys) {
      if (key.name.starts_with(prefix)) names.push_back(split(key.name.substr(prefix.size()), '.')[0]);
    }
    return names;
  }

  void read_environment(const std::vector<std::string>& environment) {
    for (const OptionKey& key : table_.keys) {
      if (key.kind == OptionKey::Kind::kTree) continue;
      const std::string name = env_name(table_, key.name);
      for (const std::string& line : environment) {
        if (line.starts_with(name + "=")) put(key, line.substr(name.size() + 1), name, 0, 0, true);
      }
    }
  }

  const OptionTable& table_;
  Options options_;
  std::string file_;
  std::vector<std::pair<const OptionKey*, std::string>> flags_;
  std::vector<Problem> problems_;
};

Result<Options> Options::load(const OptionTable& table, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment) {
  return OptionLoader(table).load(arguments, environment);
}

const Options::Value& Options::value(std::string_view name, OptionKey::Kind kind) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.kind != kind) {
    std::fprintf(stderr, "option %.*s was asked for but is not in the table with that kind\n",
                 static_cast<int>(name.size()), name.data());
    std::abort();
  }
  return found->second;
}

const std::string& Options::text(std::string_view name) const {
  return value(name, OptionKey::Kind::kString).text;
}
std::int64_t Options::integer(std::string_view name) const {
  return value(name, OptionKey::Kind::kInt).number;
}
bool Options::boolean(std::string_view name) const { return value(name, OptionKey::Kind::kBool).number != 0; }
std::int64_t Options::bytes(std::string_view name) const {
  return value(name, OptionKey::Kind::kBytes).number;
}
Duration Options::duration(std::string_view name) const {
  return Duration(value(name, OptionKey::Kind::kDuration).number);
}

const YamlNode* Options::tree(std::string_view name) const {
  const auto found = trees_.find(name);
  return found == trees_.end() ? nullptr : &found->second;
}

bool Options::is_set(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second.set : tree(name) != nullptr;
}

std::string help_text(const OptionTable& table) {
  std::string text = table.program + ": " + table.summary + "\n\nUsage: " + table.program +
                     " [--key value | --key=value]...\n\n";
  const auto line = [&](std::string head, const std::string& doc) {
    head = "  " + head;
    if (head.size() < 34) head.resize(34, ' ');
    text += head + " " + doc + "\n";
  };
  line("--config FILE", "YAML file with any of the keys below (dots make sections)");
  for (const OptionKey& key : table.keys) {
    const bool tree = key.kind == OptionKey::Kind::kTree;
    std::string doc = key.doc;
    if (tree) doc += " [in the file only]";
    if (!tree && !key.default_value.empty() && !key.secret) doc += " [" + key.default_value + "]";
    // The value of a boolean flag is never the next argument.
    const std::string space = key.kind == OptionKey::Kind::kBool ? "" : " ";
    line((tree ? key.name : flag_name(key.name)) + space + std::string(form_of(key.kind)), doc);
  }
  line("--sample-config", "print a file with every key and its default");
  line("--version", "print the version");
  line("--help, -h", "print this");
  text += "\nEvery key but those of the file only can also be set as " + table.env_prefix +
          "<KEY> in the environment. Flags win over the\nenvironment, the environment over the file.\n";
  return text;
}

std::string sample_config(const OptionTable& table) {
  std::string text = "# " + table.program + ": " + table.summary +
                     "\n# Every key with its default. Flags win over the environment (" + table.env_prefix +
                     "<KEY>), the environment over this file.\n";
  std::vector<std::string> section;
  for (const OptionKey& key : table.keys) {
    std::vector<std::string> parts = split(key.name, '.');
    const std::string leaf = parts.back();
    parts.pop_back();
    // Prints section headers only for the path components that differ from the previous key.
    std::size_t same = 0;
    while (same < parts.size() && same < section.size() && parts[same] == section[same]) ++same;
    for (std::size_t i = same; i < parts.size(); ++i) text += std::string(2 * i, ' ') + parts[i] + ":\n";
    section = parts;
    const std::string indent(2 * parts.size(), ' ');
    text += indent + "# " + key.doc + "\n";
    const bool empty = key.kind == OptionKey::Kind::kTree || key.default_value.empty();
    text += indent + (empty ? "# " : "") + leaf + ":" + (empty ? "" : " " + key.default_value) + "\n";
  }
  return text;
}

Json settings_json(const OptionTable& table, const Options& options) {
  Json all = Json::object();
  for (const OptionKey& key : table.keys) {
    Json value;
    switch (key.kind) {
      case OptionKey::Kind::kTree:
        if (const YamlNode* tree = options.tree(key.name)) value = to_json(*tree);
        break;
      case OptionKey::Kind::kInt:
        value = options.integer(key.name);
        break;
      case OptionKey::Kind::kBool:
        value = options.boolean(key.name);
        break;
      case OptionKey::Kind::kString:
      case OptionKey::Kind::kBytes:
      case OptionKey::Kind::kDuration:
        value = key.secret && !options.written(key.name).empty() ? std::string(kSecretMask)
                                                                 : options.written(key.name);
        break;
    }
    (void)set_path(all, key.name, std::move(value));
  }
  return all;
}

std::vector<std::string> process_environment() {
  std::vector<std::string> lines;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) lines.emplace_back(*entry);
  return lines;
}

}  // namespace det
