// Owns the vocabulary in which the sections of the configuration are declared: a field is one line of a table
// (name, type with its range, default), and reading, checking, "did you mean" and resolving follow from it.
// Knows no field.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/yaml.h"

namespace det::expconf {

/// Collects what is wrong with documents that were read together: files[i] names source i. A node with line 0
/// of source 0 came from the command line.
class Reader {
 public:
  explicit Reader(std::string file) : files_{std::move(file)} {}
  explicit Reader(std::vector<std::string> files) : files_(std::move(files)) {}

  void problem(const YamlNode& at, const std::string& path, const char* code, std::string message);
  /// At the key.
  void problem(const YamlEntry& at, const std::string& path, const char* code, std::string message);
  void warn(const YamlNode& at, const std::string& path, const char* code, std::string message);

  /// The document is a part of a configuration: nothing is missing from it.
  void expect_part() { partial_ = true; }
  bool partial() const { return partial_; }
  bool ok() const { return problems_.empty(); }
  /// `const.yaml:3:4`.
  std::string place_of(const YamlNode& node) const;
  /// In document order, at most 20.
  std::vector<Problem> take_problems();
  std::vector<Problem> take_warnings();

 private:
  struct Found {
    Problem problem;
    int source = 0;
  };
  Found make(const YamlNode& at, int line, int column, const std::string& path, const char* code,
             std::string message) const;
  const std::string& file_of(int source) const;
  static std::vector<Problem> in_order(std::vector<Found> found);
  const std::vector<std::string> files_;
  bool partial_ = false;
  std::vector<Found> problems_, warnings_;
};

struct Field;

/// Checks a node and gives its resolved value; null after it reported a problem at `path`. Reading a resolved
/// value again gives the same value.
class Type {
 public:
  using Read = std::function<Json(Reader&, const YamlNode&, const std::string& path)>;
  /// `form`: what is allowed, in the words of the reference page. `fields`: of a map, and of a list's items.
  Type(std::string form, Read read, std::vector<Field> fields = {});
  Json operator()(Reader& reader, const YamlNode& node, const std::string& path) const {
    return read_(reader, node, path);
  }
  const std::string& form() const { return form_; }
  const std::vector<Field>& fields() const { return *fields_; }

 private:
  std::string form_;
  Read read_;
  std::shared_ptr<const std::vector<Field>> fields_;
};

// ---- values
// --------------------------------------------------------------------------------------------------------
Type any();
Type boolean();
Type whole(std::int64_t min, std::int64_t max = std::numeric_limits<std::int64_t>::max());
/// Finite.
Type real(double min, bool min_itself_allowed = true);
Type finite();
struct TextRules {
  std::size_t min = 0, max = 4096;  ///< bytes
  bool one_line = true;             ///< no control or bidi-override characters
};
Type text(TextRules rules = {});
/// One of the names.
Type choice(std::vector<std::string> names);
/// Bytes as an integer, from one or from "512 MiB".
Type size_in_bytes();
/// An absolute path.
Type absolute_path();

// ---- collections
// ---------------------------------------------------------------------------------------------------
Type list_of(Type item, std::size_t min = 0, std::size_t max = 10'000);
/// A map whose keys the user makes up.
Type map_of(Type value);
Type free_map();

struct Field {
  std::string name;
  Type type;
  enum class Absent {
    kError,    ///< E-CFG-MISSING, with `doc`
    kDefault,  ///< `fallback`
    kSection,  ///< read as an empty map, so that the defaults inside come out
    kOmit,     ///< not in the resolved configuration either
  } absent = Absent::kOmit;
  Json fallback;
  std::string doc;  ///< what it does, for the reference page; of a required field also for the message
};
Field required(std::string name, Type type, std::string doc);
Field defaulted(std::string name, Type type, Json fallback, std::string doc);
Field section(std::string name, Type type, std::string doc);
Field optional(std::string name, Type type, std::string doc);
/// Of fields that are kept and do nothing.
inline constexpr const char* kIdle = "accepted, without effect";
/// As `optional`, with a warning that it does nothing here.
Field idle(std::string name, Type type);

/// What one field alone cannot tell. Runs after all fields; a field with a problem is null in `resolved`,
/// which the check may also change.
using Check = std::function<void(Reader&, const YamlNode& map, const std::string& path, Json& resolved)>;
/// Says why `name` is no field here, in the words after "unknown field"; "" for the usual "did you mean".
using Explain = std::function<std::string(const std::string& name)>;

/// A map with the fields of the table. A null value means that the user is silent.
Type table(std::vector<Field> fields, Check check = {}, Explain explain = {});

// ---- for types written by hand
// -------------------------------------------------------------------------------------
std::string child(const std::string& path, const std::string& name);
std::string child(const std::string& path, std::size_t index);
/// `found a string "two"`, `found 1.5`, `found a list`: for messages.
std::string found(const YamlNode& node);
/// Reports E-CFG-TYPE `must be <wanted>, found …`; null.
Json wrong_type(Reader& reader, const YamlNode& node, const std::string& path, const std::string& wanted);
/// The position of a map's value, or of the map when it is absent.
const YamlNode& value_or_map(const YamlNode& map, const std::string& name);
/// Nobody says it: absent, or null.
bool is_silent(const YamlNode& map, const std::string& name);

}  // namespace det::expconf
