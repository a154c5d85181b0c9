#include "targets.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/archive/archive.h"
#include "common/base/json.h"
#include "common/yaml/yaml.h"

namespace det::fuzz {
namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

int check_nodes(const YamlNode& node, int depth) {
  require(depth <= YamlLimits{}.depth + 1, "a tree deeper than its limit");
  require(node.line >= 1 && node.column >= 1, "a node without a position");
  int count = 1;
  for (const YamlNode& item : node.items) count += check_nodes(item, depth + 1);
  for (const YamlEntry& entry : node.entries) {
    require(entry.key != "<<", "a merge key kept as a field");
    count += check_nodes(entry.value, depth + 1);
  }
  return count;
}

bool safe(const std::string& path) {
  return !path.empty() && path[0] != '/' && path.find('\\') == std::string::npos && path != ".." &&
         !path.starts_with("../") && path.find("/../") == std::string::npos && !path.ends_with("/..") &&
         path.find('\0') == std::string::npos;
}

}  // namespace

void yaml(std::string_view text) {
  const Result<YamlNode> tree = parse_yaml(text, "fuzz.yaml");
  if (!tree) {
    require(tree.error().code == Code::kInvalidArgument && !tree.error().problems.empty(),
            "a refusal without a problem");
    const auto lines = 2 + std::count(text.begin(), text.end(), '\n');
    for (const Problem& problem : tree.error().problems) {
      require(problem.line >= 1 && problem.line <= lines && problem.column >= 1,
              "a problem outside the text");
    }
    return;
  }
  require(check_nodes(*tree, 0) <= YamlLimits{}.nodes, "more nodes than the limit");
  const Json json = to_json(*tree);
  // Aliases and escapes may make the written form exceed the default limit.
  YamlLimits roomy;
  roomy.bytes = 64 << 20;
  const Result<YamlNode> again = parse_yaml(to_yaml(json), "again.yaml", roomy);
  require(again.has_value(), "to_yaml wrote what parse_yaml refuses");
  require(to_json(*again) == json, "a value changed on its way through YAML");
}

void archive(std::string_view bytes) {
  ArchiveLimits limits;
  limits.unpacked_bytes = 1 << 20;
  limits.entries = 1000;
  const auto items = check_archive(bytes, limits);
  auto entries = read_archive(bytes, limits);
  require(items.has_value() == entries.has_value(), "check_archive and read_archive disagree");
  if (!items) {
    require(items.error().code == Code::kInvalidArgument && items.error().problems.size() == 1,
            "a refusal without a problem");
    return;
  }
  require(items->size() == entries->size(), "the readers saw different entries");
  for (std::size_t i = 0; i < items->size(); ++i) {
    const ArchiveItem& item = (*items)[i];
    require(safe(item.path), "an unsafe path came out");
    require(item.mode == 0755 || item.mode == 0644, "a mode was not masked");
    require(item.path == (*entries)[i].path &&
                item.size == static_cast<std::int64_t>((*entries)[i].content.size()),
            "the readers saw different entries");
  }
  const auto packed = pack_entries(*entries, limits);
  if (!packed) return;  // The compression ratio exceeds the limit.
  const auto again = read_archive(*packed, limits);
  require(again.has_value() && again->size() == entries->size(),
          "what was read cannot be packed and read again");
  std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  for (std::size_t i = 0; i < entries->size(); ++i) {
    require((*again)[i].path == (*entries)[i].path && (*again)[i].content == (*entries)[i].content,
            "an entry changed on its way");
  }
}

}  // namespace det::fuzz
