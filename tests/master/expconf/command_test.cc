// Owns the proof that the configuration of a command is read as it is meant, and that what is wrong with it is said.
#include "master/expconf/command.h"

#include <catch2/catch.hpp>

namespace det::expconf {
namespace {

CommandConfig read(const std::string& yaml, const Defaults& defaults = {}) {
  auto parsed = parse_command(yaml, "c.yaml", defaults);
  if (!parsed) FAIL(parsed.error().message);
  return std::move(parsed->config);
}

TEST_CASE("what is not said of a command has its default") {
  const CommandConfig config = read("entrypoint: [echo, a b]");
  CHECK(config.entrypoint == std::vector<std::string>{"echo", "a b"});
  CHECK(config.slots == 1);
  CHECK(config.priority == 42);
  CHECK(config.resource_pool.empty());
}

TEST_CASE("a command given as one line is for the shell") {
  CHECK(read("entrypoint: echo $HOME | wc").entrypoint == std::vector<std::string>{"/bin/sh", "-c", "echo $HOME | wc"});
}

TEST_CASE("a command takes the template and the master's defaults where it is silent") {
  Defaults defaults;
  defaults.template_ = Document{"template \"t\"", "description: from the template\nresources: {slots: 3, priority: 5}"};
  defaults.task_container_defaults = {{"environment", {{"environment_variables", {"A=1", "B=2"}}}},
                                      {"preemption_timeout", 9}};
  const CommandConfig config =
      read("entrypoint: [x]\nresources: {slots: 0}\nenvironment: {environment_variables: [B=3]}", defaults);
  CHECK(config.description == "from the template");
  CHECK(config.slots == 0);
  CHECK(config.priority == 5);
  CHECK(config.environment_variables == std::map<std::string, std::string>{{"A", "1"}, {"B", "3"}});
}

TEST_CASE("a stored configuration of a command reads as it was") {
  const CommandConfig config = read("entrypoint: [x]\nwork_dir: /tmp\nbind_mounts: [{host_path: /a, container_path: b}]");
  auto again = command_from_resolved(config.resolved);
  REQUIRE(again);
  CHECK(again->resolved == config.resolved);
  CHECK(again->entrypoint == config.entrypoint);
}

TEST_CASE("all that is wrong with a command is said at once") {
  const auto parsed = parse_command("entrypoint: []\nresources: {slots: -1, slot: 1, priority: 100}\nsearcher: {}\n",
                                    "c.yaml", {});
  REQUIRE_FALSE(parsed);
  std::vector<std::string> said;
  for (const Problem& problem : parsed.error().problems) said.push_back(problem.code + " " + problem.path);
  CHECK(said == std::vector<std::string>{"E-CFG-RANGE entrypoint", "E-CFG-RANGE resources.slots",
                                         "E-CFG-UNKNOWN resources.slot", "E-CFG-RANGE resources.priority",
                                         "E-CFG-UNKNOWN searcher"});
}

TEST_CASE("a command that runs nothing is refused") {
  for (const char* yaml : {"{}", "", "entrypoint: ''", "entrypoint: [' ']", "entrypoint: 7", "[a]"}) {
    INFO(yaml);
    CHECK_FALSE(parse_command(yaml, "c.yaml", {}));
  }
}

TEST_CASE("a command that no agent could hold is refused, or told to wait") {
  ClusterFacts facts;
  facts.pools = {"default"};
  facts.default_pool = "default";
  facts.unfit = [](const std::string&, int slots, bool single_node) {
    CHECK(single_node);
    return slots > 2 ? "no agent has more than 2 slots" : "";
  };
  CHECK(parse_command("entrypoint: x\nresources: {slots: 2}", "c.yaml", {}, &facts));
  CHECK_FALSE(parse_command("entrypoint: x\nresources: {slots: 3}", "c.yaml", {}, &facts));
  CHECK_FALSE(parse_command("entrypoint: x\nresources: {resource_pool: other}", "c.yaml", {}, &facts));
  facts.launch_error = false;
  const auto waits = parse_command("entrypoint: x\nresources: {slots: 3}", "c.yaml", {}, &facts);
  REQUIRE(waits);
  CHECK(waits->warnings.size() == 1);
}

}  // namespace
}  // namespace det::expconf
