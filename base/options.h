// Owns how a daemon is configured: one table of keys gives the flags, the environment names, the sample file,
// the help and the errors. Layers, later wins: default < YAML file < environment < flag.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/yaml.h"

namespace det {

/// One setting. `db.host` is `--db-host`, `DET_DB_HOST` and `db: {host: …}` in the file.
struct OptionKey {
  enum class Kind {
    kString,
    kInt,
    kBool,      ///< as a flag: `--x`, `--x=true`, `--x=false`
    kBytes,     ///< "512 MiB"
    kDuration,  ///< "30s"
    kTree,      ///< any YAML; in the file only
  };
  std::string name;
  Kind kind = Kind::kString;
  std::string default_value;  ///< as one would write it
  std::string doc;            ///< one sentence; for --help and the sample file
  bool secret = false;        ///< never printed
};

struct OptionTable {
  std::string program;     ///< "det-master"
  std::string summary;     ///< one sentence
  std::string env_prefix;  ///< "DET_"
  std::vector<OptionKey> keys;
};

/// The settings after all layers, checked by kind.
class Options {
 public:
  /// `arguments` without the program's name. `--config FILE` names the file; `environment` is "NAME=value"
  /// lines. All problems come at once: unknown keys (with the nearest name), values of the wrong kind,
  /// arguments without a key. Environment names with the prefix that are no key of the table are ignored.
  static Result<Options> load(const OptionTable& table, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& environment);

  /// `--help` or `-h` was given: print help_text and exit 0.
  bool help() const { return help_; }
  /// `--version` was given.
  bool version() const { return version_; }
  /// `--sample-config` was given: print sample_config and exit 0.
  bool sample() const { return sample_; }

  // `name` must be a key of the table with that kind (else the program is wrong and ends).
  const std::string& text(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  std::int64_t bytes(std::string_view name) const;
  Duration duration(std::string_view name) const;
  /// The text that any of them was read from.
  const std::string& written(std::string_view name) const { return values_.find(name)->second.text; }
  /// Null when the file does not set it.
  const YamlNode* tree(std::string_view name) const;
  /// True when a layer above the default set it.
  bool is_set(std::string_view name) const;

 private:
  struct Value {
    OptionKey::Kind kind{};
    std::string text;
    std::int64_t number = 0;  ///< of kInt, kBool, kBytes, kDuration (microseconds)
    bool set = false;
  };
  friend class OptionLoader;
  const Value& value(std::string_view name, OptionKey::Kind kind) const;
  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, YamlNode, std::less<>> trees_;
  bool help_ = false, version_ = false, sample_ = false;
};

std::string help_text(const OptionTable& table);
/// A YAML file with every key at its default and its doc as comment.
std::string sample_config(const OptionTable& table);
/// Every setting as the file would have it, with those in force; what is secret is "****" when it is set.
/// Trees are as they were written, with whatever secrets are in them.
Json settings_json(const OptionTable& table, const Options& options);
/// This process's environment as "NAME=value" lines.
std::vector<std::string> process_environment();

}  // namespace det
