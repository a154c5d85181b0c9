// Properties of all configurations: they survive storing and reading back, and a leaf with a wrong type is
// reported at its path in bounded time.
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <set>

#include "case_file.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/expconf/parse.h"
#include "test_paths.h"

namespace det::expconf::test {
namespace {

namespace fs = std::filesystem;
using Kind = YamlNode::Kind;

/// The seed configurations, one with every field, and those of the examples.
std::vector<std::string> examples() {
  std::vector<std::string> texts;
  for (const auto& entry : fs::directory_iterator(source_path("/tests/master/expconf/seeds")))
    texts.push_back(read_all(entry.path().string()));
  for (const auto& entry : fs::recursive_directory_iterator(source_path("/examples"))) {
    if (entry.path().extension() == ".yaml") texts.push_back(read_all(entry.path().string()));
  }
  return texts;
}

/// Calls `visit` with every scalar, empty list or empty map below the node, mutable, and its path.
void each_leaf(YamlNode& node, const std::string& path,
               const std::function<void(YamlNode&, const std::string&)>& visit) {
  for (YamlEntry& entry : node.entries)
    each_leaf(entry.value, path.empty() ? entry.key : path + "." + entry.key, visit);
  for (std::size_t i = 0; i < node.items.size(); ++i)
    each_leaf(node.items[i], path + "[" + std::to_string(i) + "]", visit);
  if (node.entries.empty() && node.items.empty()) visit(node, path);
}

/// Whether the path takes values of any type.
bool any_type(const std::string& path) {
  return path.starts_with("data") || path.find(".val") != std::string::npos ||
         (path.starts_with("hyperparameters.") && path.find('.', 16) == std::string::npos) ||
         path == "hyperparameters.nested.empty";
}

/// Values of other types than the leaf's, except those that its field accepts too.
std::vector<Json> wrong_values(const YamlNode& node, const std::string& path) {
  std::vector<Json> wrong{{{"x", 1}}, Json::array({Json::array({1})})};
  if (node.kind != Kind::kBool) wrong.push_back(true);
  if (node.kind != Kind::kString) wrong.push_back("words that fit nothing");
  const bool no_number = node.kind == Kind::kString || node.kind == Kind::kBool;
  if (no_number && !path.ends_with("shm_size")) wrong.push_back(5);
  if (node.kind == Kind::kInt && !path.ends_with("divisor") && !path.ends_with("weight") &&
      !path.starts_with("hyperparameters."))
    wrong.push_back(2.5);
  return wrong;
}

/// The indented blocks after `.. code:: yaml` (or python, which one seed uses for YAML), and fenced yaml
/// blocks.
std::vector<std::string> blocks_of(const std::string& text) {
  std::vector<std::string> blocks;
  const std::vector<std::string> lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool fenced = lines[i].starts_with("```yaml");
    if (!fenced && !lines[i].starts_with(".. code:: yaml") && !lines[i].starts_with(".. code:: python"))
      continue;
    std::string block;
    for (++i; i < lines.size(); ++i) {
      if (fenced ? lines[i].starts_with("```") : !lines[i].empty() && lines[i][0] != ' ') break;
      // "..." marks an omission.
      if (lines[i] != "...") block += lines[i] + "\n";
    }
    if (!fenced) --i;
    if (fenced || block.find("searcher:") != std::string::npos) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace

TEST_CASE("the seed and example configurations are accepted") {
  for (const std::string& text : examples()) {
    const auto parsed = parse(text, "seed.yaml", {});
    INFO(text << (parsed ? "" : parsed.error().message));
    REQUIRE(parsed);
    // everything.yaml has the fields without effect, too.
    const bool has_all = text.find("name: everything") != std::string::npos;
    for (const Problem& warning : parsed->warnings) CHECK((has_all && warning.message == "has no effect"));
  }
}

TEST_CASE("the original seed texts, if present, are accepted unchanged") {
  const fs::path seeds = fs::path(source_path()).parent_path() / "shared/seeds";
  if (!fs::is_directory(seeds)) return;
  int whole = 0, parts = 0;
  for (const auto& entry : fs::directory_iterator(seeds)) {
    for (const std::string& block : blocks_of(read_all(entry.path().string()))) {
      INFO(entry.path().filename().string() << "\n" << block);
      const auto root = parse_yaml(block, "seed");
      REQUIRE(root);
      const auto parsed = parse(block, "seed", {});
      const auto part = check_part(block, "seed");
      CHECK((root->find("searcher") != nullptr ? parsed.has_value() : part.has_value()));
      ++(root->find("searcher") != nullptr ? whole : parts);
    }
  }
  CHECK(whole == 3);
  CHECK(parts >= 1);
}

TEST_CASE("a resolved configuration survives the round trip") {
  for (const std::string& text : examples()) {
    const auto parsed =
        parse(text, "seed.yaml", {.checkpoint_storage = nullptr, .experiment_seed = 3, .name = "n"});
    REQUIRE(parsed);
    const auto again = from_resolved(parsed->config.resolved);
    INFO((again ? "" : again.error().message));
    REQUIRE(again);
    CHECK(again->resolved.dump() == parsed->config.resolved.dump());
    const auto through_text = parse_json(dump_json(parsed->config.resolved));
    REQUIRE(through_text);
    const auto third = from_resolved(*through_text);
    REQUIRE(third);
    CHECK(third->resolved.dump() == parsed->config.resolved.dump());
    CHECK(third->environment_variables == parsed->config.environment_variables);
  }
}

TEST_CASE("a damaged stored configuration is refused without a crash") {
  const auto parsed = parse(examples().front(), "seed.yaml", {});
  REQUIRE(parsed);
  for (const auto& [key, value] : parsed->config.resolved.items()) {
    for (const Json& wrong : {Json(nullptr), Json("x"), Json(Json::array({1})), Json(-3), Json({{"x", 1}})}) {
      Json damaged = parsed->config.resolved;
      damaged[key] = wrong;
      static_cast<void>(from_resolved(damaged));
    }
  }
  CHECK(!from_resolved(Json("text")));
  CHECK(!from_resolved(Json(nullptr)));
}

TEST_CASE("a leaf with a wrong type is reported at its path within 50 ms") {
  int mutations = 0, told = 0;
  Duration slowest(0);
  for (const std::string& text : examples()) {
    auto root = parse_yaml(text, "seed.yaml");
    REQUIRE(root);
    each_leaf(*root, "", [&](YamlNode& leaf, const std::string& path) {
      if (any_type(path)) return;
      const YamlNode right = leaf;
      for (const Json& wrong : wrong_values(right, path)) {
        leaf = parse_yaml(dump_json(wrong), "wrong").value();
        const std::string mutated = to_yaml(to_json(*root));
        const Duration begin = cpu_now();
        const auto parsed = parse(mutated, "seed.yaml", {});
        slowest = std::max(slowest, cpu_now() - begin);
        ++mutations;
        bool there = false;
        if (!parsed) {
          for (const Problem& problem : parsed.error().problems) there |= problem.path.starts_with(path);
        }
        INFO(path << " = " << dump_json(wrong));
        CHECK(there);
        told += there;
      }
      leaf = right;
    });
  }
  CHECK(mutations > 300);
  CHECK(told == mutations);
  CHECK(slowest < kMaxParseTime);
}

TEST_CASE("at most 20 problems are reported") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "unknown" + std::to_string(i) + ": 1\n";
  const auto parsed = parse(text, "t.yaml", {});
  REQUIRE(!parsed);
  CHECK(parsed.error().problems.size() == 20);
}

TEST_CASE("the reference page lists every field as parsed") {
  // DET_REWRITE=1 in the environment rewrites the page.
  const std::string path = source_path("/common/expconf/README.md");
  const std::string begin = "<!-- fields: written by expconf_test -->\n", end = "<!-- end of fields -->\n";
  std::string page = read_all(path);
  const std::size_t from = page.find(begin), to = page.find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::size_t start = from + begin.size();
  if (std::getenv("DET_REWRITE") != nullptr) {
    page.replace(start, to - start, reference());
    std::ofstream(path, std::ios::binary) << page;
    return;
  }
  CHECK(page.substr(start, to - start) == reference());
}

TEST_CASE("the example with all fields covers the reference, and every field is described") {
  const std::string example = read_all(source_path("/tests/master/expconf/seeds/everything.yaml"));
  std::set<std::string> missing;
  for (const std::string& line : split(reference(), '\n')) {
    if (!line.starts_with("| `")) continue;
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    INFO(line);
    CHECK(!line.ends_with("|  |"));
    if (example.find(name) == std::string::npos && line.find("without effect") == std::string::npos)
      missing.insert(name);
  }
  // Alternatives of fields in the example, deprecated names, and fields that the example cannot have.
  const std::set<std::string> others{
      "container_path",  "max_steps",    "num_rungs",  "source_checkpoint_uuid",
      "bucket",          "prefix",       "epochs",     "batches_per_step",
      "version",         "endpoint_url", "access_key", "secret_key",
      "agent_user_group"};
  for (const std::string& name : others) missing.erase(name);
  INFO(join({missing.begin(), missing.end()}, ", "));
  CHECK(missing.empty());
}

}  // namespace det::expconf::test
