// Owns properties of the configuration as a whole: stored and read back it is the same; a leaf of the wrong
// type is found at its path, quickly.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/clock.h"
#include "base/json.h"
#include "case_file.h"
#include "master/expconf/parse.h"

namespace det::expconf::test {
namespace {

std::vector<std::string> examples() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(DET_SOURCE_DIR "/tests/master/expconf/seeds"))
    texts.push_back(read_all(entry.path().string()));
  return texts;
}

struct Leaf {
  std::string path;
  std::string key;  ///< the last named part
};

void leaves(const YamlNode& node, const std::string& path, const std::string& key, std::vector<Leaf>& found) {
  for (const YamlEntry& entry : node.entries)
    leaves(entry.value, path.empty() ? entry.key : path + "." + entry.key, entry.key, found);
  if (node.entries.empty() && node.items.empty()) found.push_back({path, key});
}

/// The user's own ground: any type is right there.
bool any_type(const std::string& path) {
  return path.starts_with("data") ||
         (path.starts_with("hyperparameters.") && path.find('.', 16) == std::string::npos) ||
         path.ends_with(".val") || path.ends_with(".vals") || path == "hyperparameters.nested.empty";
}

YamlNode& at(YamlNode& root, const std::string& path) {
  YamlNode* node = &root;
  for (const std::string& part : split(path, '.')) {
    for (YamlEntry& entry : node->entries) {
      if (entry.key == part) {
        node = &entry.value;
        break;
      }
    }
  }
  return *node;
}

}  // namespace

TEST_CASE("the configurations of the seeds are accepted as they stand") {
  for (const std::string& text : examples()) {
    const auto parsed = parse(text, "seed.yaml", {});
    INFO(text << (parsed ? "" : parsed.error().message));
    REQUIRE(parsed);
    CHECK(parsed->warnings.empty());
  }
}

TEST_CASE("a resolved configuration reads back as itself") {
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

TEST_CASE("a stored configuration that is damaged is refused, never a crash") {
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

TEST_CASE("a leaf of a wrong type is a problem at its own path, within 50 ms") {
  int mutations = 0;
  for (const std::string& text : examples()) {
    auto root = parse_yaml(text, "seed.yaml");
    REQUIRE(root);
    std::vector<Leaf> found;
    leaves(*root, "", "", found);
    for (const Leaf& leaf : found) {
      if (any_type(leaf.path)) continue;
      const YamlNode& node = at(*root, leaf.path);
      std::vector<std::string> wrongs{"{x: 1}", "[[1]]"};
      if (node.kind != YamlNode::Kind::kBool) wrongs.push_back("true");
      if (node.kind != YamlNode::Kind::kString) wrongs.push_back("words that fit nothing");
      // A size may be a number too.
      const bool no_number = node.kind == YamlNode::Kind::kString || node.kind == YamlNode::Kind::kBool;
      if (no_number && leaf.key != "shm_size") wrongs.push_back("5");
      for (const std::string& wrong : wrongs) {
        const MonoTime begin = mono_now();
        const auto parsed = parse(text, "seed.yaml", {}, {{leaf.path + "=" + wrong}});
        CHECK(mono_now() - begin < std::chrono::milliseconds(50));
        INFO(leaf.path << " = " << wrong);
        REQUIRE(!parsed);
        const bool there =
            std::any_of(parsed.error().problems.begin(), parsed.error().problems.end(),
                        [&](const Problem& problem) { return problem.path.starts_with(leaf.path); });
        CHECK(there);
        ++mutations;
      }
    }
  }
  CHECK(mutations > 150);
}

TEST_CASE("at most 20 problems are told") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "unknown" + std::to_string(i) + ": 1\n";
  const auto parsed = parse(text, "t.yaml", {});
  REQUIRE(!parsed);
  CHECK(parsed.error().problems.size() == 20);
}

}  // namespace det::expconf::test
