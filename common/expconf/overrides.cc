// `--config path.to.key=value`: command-line assignments applied to a configuration tree.
#include <algorithm>

#include "common/base/text.h"
#include "common/expconf/node.h"
#include "common/expconf/parse.h"

namespace det::expconf {
namespace {

constexpr const char* kOrigin = "command line";

Problem wrong(const char* code, std::string path, std::string message) {
  return {code, std::move(path), std::move(message), kOrigin, 0, 0};
}

/// Returns the member `key`, created as null if absent.
YamlNode& child_of(YamlNode& map, const std::string& key) {
  const auto found = std::find_if(map.entries.begin(), map.entries.end(),
                                  [&](const YamlEntry& entry) { return entry.key == key; });
  if (found != map.entries.end()) return found->value;
  map.entries.push_back({key, 0, 0, {}});
  return map.entries.back().value;
}

void apply(YamlNode& root, const std::string& assignment, std::vector<Problem>& problems) {
  const std::size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  const std::vector<std::string> parts = split(path, '.');
  if (equals == std::string::npos || std::find(parts.begin(), parts.end(), "") != parts.end()) {
    problems.push_back(
        wrong("E-CFG-TYPE", path,
              "\"" + assignment + "\" is no assignment; write it like searcher.max_length.batches=100"));
    return;
  }
  auto value = parse_yaml(assignment.substr(equals + 1), kOrigin);
  if (!value) {
    // Positions inside the assignment would be taken for positions in the file.
    for (Problem& problem : value.error().problems) {
      problem.path = path;
      problem.line = problem.column = 0;
      problems.push_back(std::move(problem));
    }
    return;
  }
  // Descends to the target and creates maps for absent or null members.
  YamlNode* at = &root;
  for (const std::string& part : parts) {
    if (at->is_null()) at->kind = YamlNode::Kind::kMap;
    if (!at->is_map()) {
      problems.push_back(
          wrong("E-CFG-CONFLICT", path,
                "cannot be set: " + std::string(kind_name(at->kind)) + " is in its way, not a map"));
      return;
    }
    at = &child_of(*at, part);
  }
  place(*value, 0, 0);
  *at = std::move(*value);
}

}  // namespace

Status override_tree(YamlNode& root, const std::vector<Override>& overrides) {
  std::vector<Problem> problems;
  for (const Override& each : overrides) apply(root, each.assignment, problems);
  if (!problems.empty()) return fail(std::move(problems));
  return {};
}

Result<std::string> apply_overrides(std::string_view yaml, const std::string& file,
                                    const std::vector<Override>& overrides) {
  TRY_ASSIGN(YamlNode root, parse_yaml(yaml, file));
  if (overrides.empty()) return std::string(yaml);
  TRY(override_tree(root, overrides));
  return to_yaml(to_json(root));
}

}  // namespace det::expconf
