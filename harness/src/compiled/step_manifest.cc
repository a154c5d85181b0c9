#include "harness/src/compiled/step_manifest.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/json.h"
#include "common/base/text.h"

namespace det {
namespace {

constexpr std::int64_t kManifestFormat = 1;
constexpr std::size_t kMaxManifestBytes = 16 << 20;
/// Elements of a tensor; keeps products of sizes far from an overflow.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

constexpr std::array<std::pair<std::string_view, torch::ScalarType>, 8> kDtypes{{
    {"float32", torch::kFloat},
    {"float64", torch::kDouble},
    {"float16", torch::kHalf},
    {"bfloat16", torch::kBFloat16},
    {"int64", torch::kLong},
    {"int32", torch::kInt},
    {"uint8", torch::kByte},
    {"bool", torch::kBool},
}};

/// A name becomes a path in state dictionaries: parts of letters, digits, `_` and `-`, joined by dots.
bool is_tensor_name(std::string_view name) {
  if (name.empty() || name.size() > 500) return false;
  bool at_start = true;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!plain && (c != '.' || at_start)) return false;
    at_start = c == '.';
  }
  return !at_start;
}

class ManifestReader {
 public:
  explicit ManifestReader(const std::string& file) : file_(file) {}

  Result<StepManifest> read(const Json& json) {
    StepManifest manifest;
    if (!json.is_object()) return fail({Problem{"E-STEP-TYPE", "", "must be an object", file_}});
    check_keys(json, "",
               {"format", "torch", "package_sha256", "device", "state", "gradients", "batch",
                "hyperparameters", "metrics", "evaluation"});
    read_format(json);
    if (const Json* digest = member(json, "", "package_sha256")) {
      if (!digest->is_string())
        problem("E-STEP-TYPE", "package_sha256", "must be a string");
      else
        manifest.package_sha256 = digest->get<std::string>();
    }
    if (const Json* device = member(json, "", "device")) read_device(*device, manifest);
    manifest.state = tensors(json, "", "state");
    check_paths(manifest.state);
    manifest.gradients = tensors(json, "", "gradients");
    for (const TensorSpec& spec : manifest.gradients) {
      if (!c10::isFloatingType(spec.dtype))
        problem("E-STEP-VALUE", "gradients." + spec.name, "must be of a floating-point type");
    }
    manifest.batch = batch(json, "");
    manifest.hyperparameters = names(json, "", "hyperparameters");
    manifest.metrics = names(json, "", "metrics");
    if (std::find(manifest.metrics.begin(), manifest.metrics.end(), "loss") == manifest.metrics.end())
      problem("E-STEP-VALUE", "metrics", "must contain \"loss\"");
    if (const Json* evaluation = member(json, "", "evaluation")) read_evaluation(*evaluation, manifest);
    if (!problems_.empty()) return fail(std::move(problems_));
    return manifest;
  }

 private:
  void problem(std::string code, std::string path, std::string message) {
    problems_.push_back(
        {.code = std::move(code), .path = std::move(path), .message = std::move(message), .file = file_});
  }
  void check_keys(const Json& object, const std::string& path, const std::vector<std::string>& known) {
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        problem("E-STEP-UNKNOWN", path + key, "unknown key" + did_you_mean(key, known));
    }
  }
  const Json* member(const Json& object, const std::string& path, const std::string& key) {
    if (const auto found = object.find(key); found != object.end()) return &*found;
    problem("E-STEP-MISSING", path + key, "is missing");
    return nullptr;
  }

  void read_format(const Json& json) {
    const Json* format = member(json, "", "format");
    if (format != nullptr && *format != kManifestFormat)
      problem("E-STEP-VALUE", "format",
              "must be " + std::to_string(kManifestFormat) + ", got " + format->dump() +
                  "; export the step with the exporter of this release");
    const Json* torch = member(json, "", "torch");
    if (torch != nullptr && !torch->is_string()) problem("E-STEP-TYPE", "torch", "must be a string");
  }
  void read_device(const Json& device, StepManifest& manifest) {
    if (device == "cuda")
      manifest.device = torch::kCUDA;
    else if (device != "cpu")
      problem("E-STEP-VALUE", "device", "must be \"cpu\" or \"cuda\", got " + device.dump());
  }
  void read_evaluation(const Json& evaluation, StepManifest& manifest) {
    if (!evaluation.is_object()) return problem("E-STEP-TYPE", "evaluation", "must be an object");
    check_keys(evaluation, "evaluation.", {"batch", "metrics"});
    manifest.evaluation_batch = batch(evaluation, "evaluation.");
    manifest.evaluation_metrics = names(evaluation, "evaluation.", "metrics");
    if (!manifest.batch.empty() && !manifest.evaluation_batch.empty() &&
        names_of(manifest.batch) != names_of(manifest.evaluation_batch))
      problem("E-STEP-VALUE", "evaluation.batch", "must have the names of batch, in the same order");
  }

  /// Reads a map of name → {dtype, shape}, which must not be empty.
  std::vector<TensorSpec> tensors(const Json& object, const std::string& path, const std::string& key) {
    std::vector<TensorSpec> specs;
    const Json* map = member(object, path, key);
    if (map == nullptr) return specs;
    if (!map->is_object() || map->empty()) {
      problem("E-STEP-TYPE", path + key, "must be an object with at least one tensor");
      return specs;
    }
    for (const auto& [name, value] : map->items()) {
      const std::string place = path + key + "." + name;
      if (!is_tensor_name(name)) problem("E-STEP-VALUE", place, "is no name of a tensor");
      specs.push_back(tensor(value, name, place));
    }
    return specs;
  }
  TensorSpec tensor(const Json& value, const std::string& name, const std::string& place) {
    TensorSpec spec{.name = name, .shape = {}};
    if (!value.is_object()) {
      problem("E-STEP-TYPE", place, "must be an object with dtype and shape");
      return spec;
    }
    check_keys(value, place + ".", {"dtype", "shape"});
    if (const Json* dtype = member(value, place + ".", "dtype")) {
      const auto known = std::find_if(kDtypes.begin(), kDtypes.end(),
                                      [&](const auto& entry) { return *dtype == entry.first; });
      if (known == kDtypes.end())
        problem("E-STEP-VALUE", place + ".dtype", dtype->dump() + " is no supported element type");
      else
        spec.dtype = known->second;
    }
    if (const Json* shape = member(value, place + ".", "shape")) read_shape(*shape, place + ".shape", spec);
    return spec;
  }
  void read_shape(const Json& shape, const std::string& place, TensorSpec& spec) {
    std::int64_t elements = 1;
    bool fits = shape.is_array() && shape.size() <= 16;
    for (std::size_t i = 0; fits && i < shape.size(); ++i) {
      fits = shape[i].is_number_unsigned() && shape[i].get<std::uint64_t>() <= kMaxElements;
      if (!fits) break;
      spec.shape.push_back(shape[i].get<std::int64_t>());
      fits = !__builtin_mul_overflow(elements, spec.shape.back(), &elements) && elements <= kMaxElements;
    }
    if (!fits) problem("E-STEP-VALUE", place, "must be a list of sizes, got " + dump_json(shape));
  }

  /// Reads a batch: tensors with a common first size, the number of records.
  std::vector<TensorSpec> batch(const Json& object, const std::string& path) {
    std::vector<TensorSpec> specs = tensors(object, path, "batch");
    for (const TensorSpec& spec : specs) {
      if (spec.shape.empty() || spec.shape.front() < 1 || specs.front().shape.empty() ||
          spec.shape.front() != specs.front().shape.front()) {
        problem("E-STEP-VALUE", path + "batch." + spec.name,
                "its first size must be the number of records, the same for all tensors of the batch");
      }
    }
    return specs;
  }
  std::vector<std::string> names(const Json& object, const std::string& path, const std::string& key) {
    std::vector<std::string> list;
    const Json* value = member(object, path, key);
    if (value == nullptr) return list;
    const bool is_list = value->is_array() && std::all_of(value->begin(), value->end(), [](const Json& name) {
                           return name.is_string() && is_tensor_name(name.get<std::string>());
                         });
    if (!is_list) {
      problem("E-STEP-TYPE", path + key, "must be a list of names");
      return list;
    }
    std::set<std::string> known;
    for (const Json& name : *value) {
      list.push_back(name.get<std::string>());
      if (!known.insert(list.back()).second)
        problem("E-STEP-VALUE", path + key, list.back() + " occurs twice");
    }
    return list;
  }

  /// "a" and "a.b" exclude each other: a state dictionary is a tree.
  void check_paths(const std::vector<TensorSpec>& state) {
    const std::vector<std::string> list = names_of(state);
    const std::set<std::string> all(list.begin(), list.end());
    for (const std::string& name : all) {
      for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
        if (all.count(name.substr(0, dot)) > 0)
          problem("E-STEP-VALUE", "state." + name, "excludes the tensor " + name.substr(0, dot));
      }
    }
  }

  const std::string& file_;
  std::vector<Problem> problems_;
};

}  // namespace

Result<StepManifest> parse_step_manifest(const std::string& text, const std::string& file) {
  const auto json = parse_json(text, {.bytes = kMaxManifestBytes});
  if (!json)
    return fail(
        {Problem{.code = "E-STEP-SYNTAX", .path = "", .message = json.error().message, .file = file}});
  return ManifestReader(file).read(*json);
}

std::vector<std::string> names_of(const std::vector<TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

std::string describe(torch::ScalarType dtype, const std::vector<std::int64_t>& shape) {
  const auto known =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const auto& entry) { return entry.second == dtype; });
  std::string text(known == kDtypes.end() ? torch::toString(dtype) : known->first.data());
  text += " [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace det
