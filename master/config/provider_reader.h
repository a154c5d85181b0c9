// Reader of one map of settings with a path for its problems. Shared by the readers of providers.
#pragma once

#include <string>
#include <vector>

#include "common/base/options.h"
#include "master/config/pools.h"

namespace det {

/// Reads the keys of a provider. A failed check appends a problem and leaves the default.
class ProviderReader {
 public:
  ProviderReader(const YamlNode& node, std::string path, std::vector<Problem>& problems)
      : node_(node), path_(std::move(path)), problems_(problems) {}

  void integer(const char* key, int& value, int largest);
  /// Reads a duration of at least `least`.
  void duration(const char* key, Duration& value, Duration least = std::chrono::seconds(1));
  void text(const char* key, std::string& value);
  /// Reads a list of long options without those that the master sets (`own`, without hyphens).
  void long_options(const char* key, std::vector<std::string>& values, const std::vector<std::string>& own);
  /// Reads a map of scalars; the values become texts.
  void texts(const char* key, Json& value);
  /// Reads a list of maps.
  void maps(const char* key, Json& value);
  void map(const char* key, Json& value);
  void require(const char* key, const std::string& meaning);
  /// Refuses a key that is set.
  void refuse(const char* key, const std::string& reason);
  /// Refuses keys that are not in `known`.
  void refuse_others(const std::string& type, const std::vector<std::string>& known);
  void add(const std::string& key, const std::string& message);

 private:
  const YamlNode& node_;
  const std::string path_;
  std::vector<Problem>& problems_;
};

/// Reads the keys of type kubernetes into `config`.
void read_kubernetes(ProviderReader& reader, ProviderConfig& config);
/// Returns the keys of type kubernetes.
const std::vector<std::string>& kubernetes_keys();

}  // namespace det
