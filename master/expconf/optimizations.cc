// Owns the section `optimizations` (determined-0.38 §1.11) and the list `log_policies` (§1.12).
#include <set>

#include "master/expconf/sections.h"

namespace det::expconf {
namespace {

/// "cancel_retries", or the older {type: cancel_retries}.
Json read_action(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type name = choice({"cancel_retries", "exclude_node"});
  if (!node.is_map()) return name(reader, node, path);
  return table({required("type", name, "cancel_retries or exclude_node")})(reader, node, path)
      .value("type", Json());
}

void check_policy(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  if (!resolved.contains("name") && !resolved.contains("pattern"))
    reader.problem(map, child(path, "name"), "E-CFG-MISSING", "a log policy needs a name or a pattern");
}

Json read_policies(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type policies =
      list_of(table({optional("name", text({.min = 1, .max = 128})),
                     optional("pattern", text({.min = 1, .max = 1024})), optional("action", read_action)},
                    check_policy));
  Json list = policies(reader, node, path);
  std::set<std::string> names;
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
      {defaulted("aggregation_frequency", whole(1), 1),
       defaulted("average_aggregated_gradients", boolean(), true),
       defaulted("average_training_metrics", boolean(), true),
       defaulted("gradient_compression", boolean(), false), optional("grad_updates_size_file", text()),
       defaulted("mixed_precision", choice({"O0", "O1", "O2", "O3"}), "O0"),
       defaulted("precision", choice({"fp32", "bf16", "fp16"}), "fp32"),
       defaulted("tensor_fusion_threshold", whole(0), 64), defaulted("tensor_fusion_cycle_time", whole(0), 1),
       defaulted("auto_tune_tensor_fusion", boolean(), false)});
}

Type log_policies_type() { return read_policies; }

}  // namespace det::expconf
