// Declarative schema of configuration sections. A field is one line of a table (name, type with range,
// default); parsing, checks, "did you mean" and defaults follow from it. Independent of the fields.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/yaml/yaml.h"

namespace det::expconf {

/// Collects the problems of documents that are read together. files[i] is the name of source i. A node of
/// source 0 with line 0 came from the command line. Not thread-safe.
class Reader {
 public:
  explicit Reader(std::string file) : files_{std::move(file)} {}
  explicit Reader(std::vector<std::string> files) : files_(std::move(files)) {}

  /// Adds an error at the value. Dropped for a missing field of a partial document.
  void problem(const YamlNode& at, const std::string& path, const char* code, std::string message);
  /// Adds an error at the key.
  void problem(const YamlEntry& at, const std::string& path, const char* code, std::string message);
  /// Adds a warning.
  void warn(const YamlNode& at, const std::string& path, const char* code, std::string message);

  /// Declares the document partial: missing fields are no error.
  void expect_part() { partial_ = true; }
  bool partial() const { return partial_; }
  bool ok() const { return problems_.empty(); }
  /// Returns the position of a node, such as `const.yaml:3:4`.
  std::string place_of(const YamlNode& node) const;
  /// Returns the problems in document order, at most 20, and clears them.
  std::vector<Problem> take_problems();
  std::vector<Problem> take_warnings();

 private:
  // A problem with the source that orders it.
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

/// A type checks a node and returns its resolved value, or null after reporting a problem at `path`. Reading
/// a resolved value again returns the same value.
class Type {
 public:
  using Read = std::function<Json(Reader&, const YamlNode&, const std::string& path)>;
  /// `form`: what is allowed, as shown in the reference page. `fields`: fields of a map, or of the items of a
  /// list.
  Type(std::string form, Read read);
  Type(std::string form, Read read, std::vector<Field> fields);
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

// Scalar types.

/// Any value, unchecked.
Type any();
Type boolean();
/// Integer in [min, max].
Type whole(std::int64_t min, std::int64_t max = std::numeric_limits<std::int64_t>::max());
/// Finite number, >= min or > min.
Type real(double min, bool min_itself_allowed = true);
/// Any finite number.
Type finite();
/// Constraints of a string.
struct TextRules {
  std::size_t min = 0, max = 4096;  ///< bytes
  /// Rejects control and bidirectional override characters.
  bool one_line = true;
};
/// String within `rules`.
Type text(TextRules rules = {});
/// One of `names`.
Type choice(std::vector<std::string> names);
/// Number of bytes: an integer, or a string such as "512 MiB". Resolved: the integer.
Type size_in_bytes();
Type absolute_path();

// Collection types.

/// List with min to max items.
Type list_of(Type item, std::size_t min = 0, std::size_t max = 10'000);
/// Map with keys chosen by the user.
Type map_of(Type value);
/// map_of(any()).
Type free_map();

/// A field of a table.
struct Field {
  std::string name;
  Type type;
  /// Resolution of a missing or null field.
  enum class Absent {
    kError,    ///< problem E-CFG-MISSING with `doc`
    kDefault,  ///< resolves to `fallback`
    kSection,  ///< read as an empty map, so that inner defaults apply
    kOmit,     ///< left out of the resolved configuration
  } absent = Absent::kOmit;
  Json fallback;
  /// Effect, for the reference page; for a required field also the text of the error.
  std::string doc;
};
/// Field with Absent::kError, kDefault, kSection and kOmit, respectively.
Field required(std::string name, Type type, std::string doc);
Field defaulted(std::string name, Type type, Json fallback, std::string doc);
Field section(std::string name, Type type, std::string doc);
Field optional(std::string name, Type type, std::string doc);
/// Documentation of fields that are accepted and ignored.
inline constexpr const char* kIdle = "accepted, without effect";
/// The same type with a warning, "has no effect", unless the value is an empty list or map.
Type inert(const Type& type);
/// Optional field that is kept but ignored, with a warning.
Field idle(std::string name, const Type& type);

/// Check across fields. Runs after all fields were read and may modify `resolved`. A field with a problem is
/// null in `resolved`.
using Check = std::function<void(Reader&, const YamlNode& map, const std::string& path, Json& resolved)>;
/// Explains why `name` is not a field here, as text after "unknown field"; "" selects the usual "did you
/// mean".
using Explain = std::function<std::string(const std::string& name)>;

/// Map with the given fields. A null value counts as absent.
Type table(std::vector<Field> fields, Check check = {}, Explain explain = {});

// Helpers of types written by hand.

/// Returns the path of a member of a map, or of an item of a list.
std::string child(const std::string& path, const std::string& name);
std::string child(const std::string& path, std::size_t index);
/// Describes a node for messages: `found a string "two"`, `found 1.5`, `found a list`.
std::string found(const YamlNode& node);
/// Reports E-CFG-TYPE `must be <wanted>, found …` and returns null. Values of secrets are not shown.
Json wrong_type(Reader& reader, const YamlNode& node, const std::string& path, const std::string& wanted);
/// Returns the value of a member, or the map itself if the member is absent.
const YamlNode& value_or_map(const YamlNode& map, const std::string& name);
/// Returns whether a member is absent or null.
bool is_silent(const YamlNode& map, const std::string& name);

}  // namespace det::expconf
