// Configuration of a daemon. One table of keys yields flags, environment names, sample file, help and error
// messages. Precedence, lowest first: default, YAML file, environment, flag.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "common/yaml/yaml.h"

namespace det {

/// A setting. `db.host` is `--db-host`, `DET_DB_HOST`, and `db: {host: ...}` in the file.
struct OptionKey {
  enum class Kind {
    kString,
    kInt,
    kBool,      ///< flag syntax: `--x`, `--x=true`, `--x=false`
    kBytes,     ///< "512 MiB"
    kDuration,  ///< "30s"
    kTree,      ///< any YAML; in the file only
  };
  std::string name;
  Kind kind = Kind::kString;
  std::string default_value;  ///< in the syntax of the file
  std::string doc;            ///< one sentence, for --help and the sample file
  bool secret = false;        ///< never printed
};

/// The settings of one program.
struct OptionTable {
  std::string program;     ///< "det-master"
  std::string summary;     ///< one sentence
  std::string env_prefix;  ///< "DET_"
  std::vector<OptionKey> keys;
};

/// Settings merged from all layers and checked against their kinds. Immutable after load.
class Options {
 public:
  /// Merges the layers. `arguments` excludes the program name; `--config FILE` names the file. `environment`
  /// holds "NAME=value" lines; names with the prefix that match no key are ignored.
  /// Errors: all problems of flags, environment and file at once (kInvalidArgument): unknown keys (with the
  /// nearest name), values of the wrong kind, arguments without a key. Fails early if the file cannot be read
  /// or parsed.
  static Result<Options> load(const OptionTable& table, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment);

  /// `--help` or `-h` was given: print help_text and exit 0.
  bool help() const { return help_; }
  /// `--version` was given.
  bool version() const { return version_; }
  /// `--sample-config` was given: print sample_config and exit 0.
  bool sample() const { return sample_; }

  // Typed accessors. `name` must be a key of the table with that kind; otherwise the process aborts.
  const std::string& text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::int64_t bytes(std::string_view name) const;
  Duration duration(std::string_view name) const;
  /// Returns the value as text, in the form in which it was set. `name` must be a key that is not a tree.
  const std::string& written(std::string_view name) const { return values_.find(name)->second.text; }
  /// Returns the YAML of a tree key; null if the file does not set it.
  const YamlNode* tree(std::string_view name) const;
  /// True if the file, the environment or a flag sets the key.
  bool is_set(std::string_view name) const;

 private:
  /// A parsed setting.
  struct Value {
    OptionKey::Kind kind{};
    std::string text;
    std::int64_t number = 0;  ///< for kInt, kBool, kBytes and kDuration (microseconds)
    bool set = false;
  };
  friend class OptionLoader;
  const Value& value(std::string_view name, OptionKey::Kind kind) const;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, YamlNode, std::less<>> trees_;
  bool help_ = false, version_ = false, sample_ = false;
};

/// Returns the text of `--help`.
std::string help_text(const OptionTable& table);
/// Returns a YAML file with every key at its default and its doc as a comment.
std::string sample_config(const OptionTable& table);
/// Returns the effective settings in the structure of the file. Secrets that are set appear as "****". Trees
/// are copied as written and may contain secrets; the caller must mask those.
Json settings_json(const OptionTable& table, const Options& options);
/// Returns this process's environment as "NAME=value" lines.
std::vector<std::string> process_environment();

}  // namespace det
