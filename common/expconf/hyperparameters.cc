// Section `hyperparameters`: constants, ranges, choices and nested maps.
#include <algorithm>
#include <cmath>
#include <set>

#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

constexpr int kMaxHyperparameters = 1000;
constexpr std::size_t kMaxValues = 100'000;

void check_order(Reader& reader, const YamlNode& map, const std::string& path, const Json& resolved) {
  const Json low = resolved.value("minval", Json()), high = resolved.value("maxval", Json());
  if (low.is_null() || high.is_null() || low < high) return;
  reader.problem(value_or_map(map, "minval"), child(path, "minval"), "E-CFG-RANGE",
                 "minval must be below maxval, got " + low.dump() + " and " + high.dump());
}

void check_int(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_order(reader, map, path, resolved);
  const Json low = resolved.value("minval", Json()), high = resolved.value("maxval", Json());
  if (low.is_null() || high.is_null()) return;
  // 128 bits: the width of a full 64-bit range overflows 64 bits.
  const auto width = static_cast<__int128>(high.get<std::int64_t>()) - low.get<std::int64_t>() + 1;
  if (width > std::numeric_limits<std::int64_t>::max())
    reader.problem(map, path, "E-CFG-LIMIT", "the range holds more than 2^63 - 1 integers; narrow it");
}

void check_double(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_order(reader, map, path, resolved);
}

void check_log(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  check_order(reader, map, path, resolved);
  const Json base = resolved.value("base", Json());
  if (base.is_null()) return;
  if (base.get<double>() == 1) {
    reader.problem(value_or_map(map, "base"), child(path, "base"), "E-CFG-RANGE",
                   "must not be 1: every power is 1");
    return;
  }
  // minval and maxval are exponents; both powers must be finite and above 0.
  for (const char* end : {"minval", "maxval"}) {
    const Json exponent = resolved.value(end, Json());
    if (exponent.is_null()) continue;
    const double value = std::pow(base.get<double>(), exponent.get<double>());
    if (!std::isfinite(value) || value == 0)
      reader.problem(
          value_or_map(map, end), child(path, end), "E-CFG-RANGE",
          base.dump() + "^" + exponent.dump() + " is not representable; minval and maxval are exponents");
  }
}

void check_categorical(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  // Duplicates are legal: they weight a value.
  std::set<Json> seen;
  for (const Json& value : resolved["vals"]) {
    if (seen.insert(value).second) continue;
    reader.warn(value_or_map(map, "vals"), child(path, "vals"), "E-CFG-CONFLICT",
                value.dump() + " is there twice: it is drawn twice as often");
    return;
  }
}

/// `val` is required but may be null, so an absent and a null value differ here.
void check_const(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  if (resolved.contains("val")) return;
  if (map.find("val") == nullptr)
    reader.problem(map, child(path, "val"), "E-CFG-MISSING", "is required: the value");
  resolved["val"] = nullptr;
}

/// A kind of hyperparameter: the fields beside `type` and their check.
struct HyperparameterKind {
  std::string name;
  Hyperparameter::Type type;
  std::vector<Field> fields;
  Check check;
};

const std::vector<HyperparameterKind>& hyperparameter_kinds() {
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  static const Field count = optional("count", whole(1), "how many values of it a grid tries");
  static const std::vector<HyperparameterKind> all{
      {"int",
       Hyperparameter::Type::kInt,
       {required("minval", whole(kLow), "the smallest value"),
        required("maxval", whole(kLow), "the largest value"), count},
       check_int},
      {"double",
       Hyperparameter::Type::kDouble,
       {required("minval", finite(), "the smallest value"), required("maxval", finite(), "the largest value"),
        count},
       check_double},
      {"log",
       Hyperparameter::Type::kLog,
       {required("minval", finite(), "the smallest exponent"),
        required("maxval", finite(), "the largest exponent"),
        required("base", real(0, false), "the base of the powers"), count},
       check_log},
      {"categorical",
       Hyperparameter::Type::kCategorical,
       {required("vals", list_of(any(), 1, kMaxValues), "the values to choose from")},
       check_categorical},
      {"const",
       Hyperparameter::Type::kConst,
       {optional("val", any(), "the value, required; it may be null")},
       check_const},
  };
  return all;
}

/// Reads a map with `type`, which selects the kind and so the other fields.
Json read_typed(Reader& reader, const YamlNode& node, const YamlNode& type, const std::string& path) {
  std::vector<std::string> names;
  for (const HyperparameterKind& kind : hyperparameter_kinds()) {
    names.push_back(kind.name);
    if (kind.name != type.text || type.kind != YamlNode::Kind::kString) continue;
    std::vector<Field> fields{required("type", any(), "")};
    fields.insert(fields.end(), kind.fields.begin(), kind.fields.end());
    return table(std::move(fields), kind.check)(reader, node, path);
  }
  // Common mistakes that the edit distance of did_you_mean would miss.
  const std::string meant = type.text == "integer" ? "; did you mean \"int\"?"
                            : type.text == "float" ? "; did you mean \"double\"?"
                                                   : did_you_mean(type.text, names);
  reader.problem(type, child(path, "type"), "E-CFG-ENUM",
                 "must be one of " + join(names, ", ") + ", " + found(type) + meant);
  return nullptr;
}

/// Dots separate nested names in paths; "__proto__" would be special to JavaScript clients.
bool is_good_name(const std::string& name) {
  return !name.empty() && name.size() <= 128 && name.find('.') == std::string::npos && name != "__proto__" &&
         !has_control_characters(name);
}

Json read_map(Reader& reader, const YamlNode& node, const std::string& path, int& count);

Json read_one(Reader& reader, const YamlNode& node, const std::string& path, int& count) {
  // A value without a type is a constant.
  if (!node.is_map()) {
    ++count;
    return {{"type", "const"}, {"val", to_json(node)}};
  }
  const YamlNode* type = node.find("type");
  if (type == nullptr) return read_map(reader, node, path, count);
  ++count;
  return read_typed(reader, node, *type, path);
}

Json read_map(Reader& reader, const YamlNode& node, const std::string& path, int& count) {
  Json map = Json::object();
  for (const YamlEntry& entry : node.entries) {
    if (!is_good_name(entry.key)) {
      reader.problem(
          entry, child(path, entry.key.substr(0, 128)), "E-CFG-RANGE",
          "a hyperparameter's name has 1 to 128 characters, none of them a dot or a control character");
      continue;
    }
    map[entry.key] = read_one(reader, entry.value, child(path, entry.key), count);
  }
  return map;
}

Json read_all(Reader& reader, const YamlNode& node, const std::string& path) {
  if (!node.is_map()) return wrong_type(reader, node, path, "a map");
  int count = 0;
  Json map = read_map(reader, node, path, count);
  if (count > kMaxHyperparameters)
    reader.problem(
        node, path, "E-CFG-LIMIT",
        std::to_string(count) + " hyperparameters, at most " + std::to_string(kMaxHyperparameters));
  return map;
}

/// Converts one resolved hyperparameter. A map without `type` is a nested group.
Hyperparameter load_one(const Json& resolved) {
  Hyperparameter loaded;
  if (!resolved.contains("type")) {
    loaded.type = Hyperparameter::Type::kNested;
    loaded.children = load_hyperparameters(resolved);
    return loaded;
  }
  for (const HyperparameterKind& kind : hyperparameter_kinds()) {
    if (resolved.at("type") == kind.name) loaded.type = kind.type;
  }
  switch (loaded.type) {
    case Hyperparameter::Type::kConst:
      loaded.value = nlohmann::json(resolved.at("val"));
      return loaded;
    case Hyperparameter::Type::kCategorical:
      for (const Json& value : resolved.at("vals")) loaded.values.emplace_back(nlohmann::json(value));
      return loaded;
    case Hyperparameter::Type::kInt:
      loaded.int_min = resolved.at("minval").get<std::int64_t>();
      loaded.int_max = resolved.at("maxval").get<std::int64_t>();
      break;
    case Hyperparameter::Type::kDouble:
    case Hyperparameter::Type::kLog:
      loaded.min = resolved.at("minval").get<double>();
      loaded.max = resolved.at("maxval").get<double>();
      loaded.base = resolved.value("base", 0.0);
      break;
    case Hyperparameter::Type::kNested:
      break;
  }
  if (resolved.contains("count")) loaded.count = resolved.at("count").get<std::int64_t>();
  return loaded;
}

/// Calls `visit` for every typed leaf with its node, path and resolved value.
template <typename Visit>
void each_leaf(const YamlNode& node, const std::string& path, const Json& resolved, const Visit& visit) {
  for (const YamlEntry& entry : node.entries) {
    const Json value = resolved.value(entry.key, Json());
    if (!value.is_object()) continue;
    if (value.contains("type")) {
      visit(entry.value, child(path, entry.key), value);
    } else {
      each_leaf(entry.value, child(path, entry.key), value, visit);
    }
  }
}

bool is_range(const Json& leaf) {
  return leaf["type"] == "int" || leaf["type"] == "double" || leaf["type"] == "log";
}

/// Returns the number of values along a grid axis; 0 if a problem was already reported.
std::int64_t grid_points(const Json& leaf) {
  if (leaf["type"] == "const") return 1;
  if (leaf["type"] == "categorical") return static_cast<std::int64_t>(leaf["vals"].size());
  const Json count = leaf.value("count", Json());
  if (!count.is_number_integer()) return 0;
  const auto points = count.get<std::int64_t>();
  if (leaf["type"] != "int" || leaf["minval"].is_null() || leaf["maxval"].is_null()) return points;
  const auto width =
      static_cast<__int128>(leaf["maxval"].get<std::int64_t>()) - leaf["minval"].get<std::int64_t>() + 1;
  return width < points ? static_cast<std::int64_t>(width) : points;
}

}  // namespace

void check_grid(Reader& reader, const YamlNode& node, const std::string& path, const Json& resolved) {
  // The product saturates, so that it cannot overflow however many axes there are.
  constexpr __int128 kTooMany = 1'000'000'000'000'000'000;
  __int128 trials = 1;
  bool searched = false;
  each_leaf(node, path, resolved, [&](const YamlNode& at, const std::string& where, const Json& leaf) {
    if (is_range(leaf) && !leaf.contains("count"))
      reader.problem(at, child(where, "count"), "E-CFG-MISSING",
                     "is required by a grid: how many values to try");
    searched |= leaf["type"] != "const";
    trials = std::min(trials * std::max<__int128>(grid_points(leaf), 1), kTooMany);
  });
  if (trials > kMaxTrials) {
    const std::string many =
        trials == kTooMany ? "10^18 or more" : std::to_string(static_cast<std::int64_t>(trials));
    reader.problem(
        node, path, "E-CFG-LIMIT",
        "the grid has " + many + " trials, at most " + std::to_string(kMaxTrials) + "; lower a count");
  }
  if (!searched) reader.warn(node, path, "E-CFG-CONFLICT", "the grid has nothing to vary: it is one trial");
}

void check_single(Reader& reader, const YamlNode& node, const std::string& path, const Json& resolved) {
  each_leaf(node, path, resolved, [&](const YamlNode& at, const std::string& where, const Json& leaf) {
    if (is_range(leaf) || leaf["type"] == "categorical")
      reader.warn(at, where, "E-CFG-CONFLICT", "searcher single draws one value and tries no other");
  });
}

Type hyperparameters_type() { return {"map of hyperparameters", read_all}; }

HyperparameterMap load_hyperparameters(const Json& resolved) {
  HyperparameterMap map;
  for (const auto& [name, value] : resolved.items()) map.emplace(name, load_one(value));
  return map;
}

}  // namespace det::expconf
