// Section `optimizations` and list `log_policies`.
#include <re2/re2.h>

#include <set>

#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Reads "cancel_retries", or the older form {type: cancel_retries}.
Json read_action(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type name = choice({"cancel_retries", "exclude_node"});
  if (!node.is_map()) return name(reader, node, path);
  return table({required("type", name, "cancel_retries or exclude_node")})(reader, node, path)
      .value("type", Json());
}

/// Reads an RE2 pattern. RE2 matches in time linear in the line (https://github.com/google/re2), so that a
/// user's pattern cannot stall the log pipeline.
Json read_pattern(Reader& reader, const YamlNode& node, const std::string& path) {
  Json value = text({.min = 1, .max = 1024})(reader, node, path);
  if (!value.is_string()) return value;
  const re2::RE2 pattern(node.text, re2::RE2::Quiet);
  if (pattern.ok()) return value;
  const std::size_t at =
      pattern.error_arg().empty() ? std::string::npos : node.text.find(pattern.error_arg());
  reader.problem(node, path, "E-CFG-RANGE",
                 "bad pattern" + (at == std::string::npos ? "" : " at character " + std::to_string(at + 1)) +
                     ": " + make_utf8(pattern.error()));
  return nullptr;
}

void check_policy(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  if (!resolved.contains("name") && !resolved.contains("pattern"))
    reader.problem(map, child(path, "name"), "E-CFG-MISSING", "a log policy needs a name or a pattern");
}

std::vector<Field> policy_fields() {
  return {
      optional("name", text({.min = 1, .max = 128}), "name shown on a trial with a matching line"),
      optional("pattern", {"RE2 pattern", read_pattern}, "regular expression for lines of the trial's log"),
      optional("action", {"cancel_retries, exclude_node", read_action},
               "cancel_retries: no further restarts; exclude_node: no further runs on that agent")};
}

Json read_log_policies(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type policies = list_of(table(policy_fields(), check_policy));
  Json list = policies(reader, node, path);
  std::set<std::string> names;
  // Names are the keys by which layers merge log policies.
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json name = list[i].is_object() ? list[i].value("name", Json()) : Json();
    if (name.is_string() && !names.insert(name.get<std::string>()).second)
      reader.problem(node.items[i], child(child(path, i), "name"), "E-CFG-CONFLICT",
                     "another log policy has this name; names must differ");
  }
  return list;
}

}  // namespace

Type optimizations_type() {
  return table(
      {defaulted("aggregation_frequency", whole(1), 1, "batches between two gradient updates"),
       defaulted("average_aggregated_gradients", boolean(), true,
                 "divide the gradients by aggregation_frequency"),
       defaulted("average_training_metrics", boolean(), true, "average training metrics over all slots"),
       defaulted("cuda_graph", boolean(), false,
                 "record a training step once and repeat it as one CUDA graph"),
       defaulted("gradient_compression", boolean(), false, kIdle), idle("grad_updates_size_file", text()),
       defaulted("mixed_precision", choice({"O0", "O1", "O2", "O3"}), "O0",
                 "mixed-precision level of Determined AI; O0: none"),
       defaulted("precision", choice({"fp32", "bf16", "fp16"}), "fp32",
                 "number format of forward and backward pass"),
       defaulted("tensor_fusion_threshold", whole(0), 64, kIdle),
       defaulted("tensor_fusion_cycle_time", whole(0), 1, kIdle),
       defaulted("auto_tune_tensor_fusion", boolean(), false, kIdle),
       defaulted("zero", whole(0, 1), 0,
                 "1: each process keeps one part of the optimizers' state (ZeRO stage 1)")});
}

Type log_policies_type() { return {"list of maps", read_log_policies, policy_fields()}; }

Json default_log_policies() {
  return {{{"name", "CUDA OOM"}, {"pattern", ".*CUDA out of memory.*"}},
          {{"name", "ECC Error"}, {"pattern", ".*uncorrectable ECC error encountered.*"}}};
}

}  // namespace det::expconf
