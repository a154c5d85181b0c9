#include "master/expconf/parse.h"

#include "master/expconf/node.h"
#include "master/expconf/overrides.h"
#include "master/expconf/sections.h"

namespace det::expconf {

Result<Parsed> parse(std::string_view yaml, const std::string& file, const Defaults& defaults,
                     const std::vector<Override>& overrides) {
  TRY_ASSIGN(YamlNode root, parse_yaml(yaml, file));
  TRY(override_tree(root, overrides));
  Reader reader(file);
  if (root.is_null()) {
    reader.problem(1, 1, "", "E-CFG-MISSING", "config is empty; it needs at least entrypoint and searcher");
    return fail(reader.take_problems());
  }
  if (!root.is_map()) {
    reader.problem(root, "", "E-CFG-TYPE",
                   "top level must be a map, found " + std::string(kind_name(root.kind)));
    return fail(reader.take_problems());
  }
  Json resolved = top_level(defaults)(reader, root, "");
  if (!reader.ok()) return fail(reader.take_problems());
  return Parsed{load(std::move(resolved)), reader.take_warnings()};
}

Result<ExperimentConfig> from_resolved(const nlohmann::ordered_json& resolved) {
  Reader reader("");
  Json again = top_level({})(reader, node_from_json(resolved), "");
  if (!reader.ok()) return fail(reader.take_problems());
  return load(std::move(again));
}

}  // namespace det::expconf
