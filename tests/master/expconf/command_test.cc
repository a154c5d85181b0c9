// Parsing of command configurations and the problems that it reports.
#include "common/expconf/command.h"

#include <catch2/catch.hpp>

#include "common/expconf/policies.h"

namespace det::expconf {
namespace {

CommandConfig read(const std::string& yaml, const Defaults& defaults = {}) {
  auto parsed = parse_command(yaml, "c.yaml", defaults);
  if (!parsed) FAIL(parsed.error().message);
  return std::move(parsed->config);
}

TEST_CASE("unset fields of a command have their defaults") {
  const CommandConfig config = read("entrypoint: [echo, a b]");
  CHECK(config.entrypoint == std::vector<std::string>{"echo", "a b"});
  CHECK(config.slots == 1);
  CHECK(config.priority == 42);
  CHECK(config.resource_pool.empty());
}

TEST_CASE("a command given as one string runs in the shell") {
  CHECK(read("entrypoint: echo $HOME | wc").entrypoint ==
        std::vector<std::string>{"/bin/sh", "-c", "echo $HOME | wc"});
  CHECK(read("entrypoint: [echo $HOME | wc]").entrypoint ==
        std::vector<std::string>{"/bin/sh", "-c", "echo $HOME | wc"});
}

TEST_CASE("unset fields of a command come from the template and the master's defaults") {
  Defaults defaults;
  defaults.template_ =
      Document{"template \"t\"", "description: from the template\nresources: {slots: 3, priority: 5}"};
  defaults.task_container_defaults = {{"environment", {{"environment_variables", {"A=1", "B=2"}}}},
                                      {"preemption_timeout", 9}};
  const CommandConfig config =
      read("entrypoint: [x]\nresources: {slots: 0}\nenvironment: {environment_variables: [B=3]}", defaults);
  CHECK(config.description == "from the template");
  CHECK(config.slots == 0);
  CHECK(config.priority == 5);
  CHECK(config.environment_variables == std::map<std::string, std::string>{{"A", "1"}, {"B", "3"}});
}

TEST_CASE("a template of experiments and commands may set the slots of commands") {
  CHECK(check_part("name: shared\nresources: {slots: 2, weight: 1}", "t"));
  CHECK(check_part("description: shared\nresources: {slots: 2}", "t"));
  const auto wrong = check_part("name: shared\nresources: {slots: many}", "t");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().problems.at(0).path == "resources.slots");
}

TEST_CASE("without launch_error a command waits for slots of its template only") {
  ClusterFacts cluster;
  cluster.pools = {"default"};
  cluster.default_pool = "default";
  cluster.launch_error = false;
  cluster.unfit = [](const std::string&, int slots, bool) {
    return slots > 8 ? std::string("too many") : "";
  };
  Defaults defaults;
  defaults.template_ = Document{"template \"t\"", "resources: {slots: 9}"};
  const auto waits = parse_command("entrypoint: [x]", "c.yaml", defaults, &cluster);
  REQUIRE(waits);
  REQUIRE(waits->warnings.size() == 1);
  CHECK(waits->warnings[0].message.find("it waits until there is one") != std::string::npos);
  const auto refused = parse_command("entrypoint: [x]\nresources: {slots: 9}", "c.yaml", defaults, &cluster);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().problems.at(0).message.find("request unfulfillable") != std::string::npos);
}

TEST_CASE("task policies override and bound command configurations") {
  Defaults defaults;
  defaults.policies = {
      {"P",
       "invariant_config: {description: fixed, environment: {environment_variables: [A=admin]}}\n"
       "constraints: {priority_limit: 30, resources: {max_slots: 4}}"},
      {"W", "constraints: {priority_limit: 45, resources: {max_slots: 8}}"}};
  auto parsed =
      parse_command("entrypoint: [x]\ndescription: mine\nenvironment: {environment_variables: [A=1, B=2]}",
                    "c.yaml", defaults);
  REQUIRE(parsed);
  CHECK(parsed->config.description == "fixed");
  CHECK(parsed->config.environment_variables ==
        std::map<std::string, std::string>{{"A", "admin"}, {"B", "2"}});
  CHECK(parsed->config.slots == 1);
  CHECK(parsed->config.priority == 45);
  bool told = false;
  for (const Problem& warning : parsed->warnings)
    told = told || (warning.path == "description" &&
                    warning.message.find("P:1:33 sets it for every task") != std::string::npos);
  CHECK(told);
  const auto refused =
      parse_command("entrypoint: [x]\nresources: {slots: 5, priority: 44}", "c.yaml", defaults);
  REQUIRE(!refused);
  REQUIRE(refused.error().problems.size() == 2);
  CHECK(refused.error().problems[0].message.find("at most 4, got 5; the limit max_slots is set by P:2:") ==
        0);
  CHECK(refused.error().problems[1].message.find(
            "at least 45 (smaller goes first), got 44; priority_limit is set by W:1:") == 0);
  // A limit below the default replaces the default.
  defaults.policies = {{"P", "constraints: {resources: {max_slots: 0}}"}};
  CHECK(read("entrypoint: [x]", defaults).slots == 0);
  // Task policies accept fields of commands only, and experiment policies fields of experiments only.
  CHECK(!read_policies("invariant_config: {max_restarts: 3}", "P", Workload::kTask));
  CHECK(!read_policies("invariant_config: {resources: {slots: 3}}", "P", Workload::kExperiment));
  CHECK(!read_policies("invariant_config: {resources: {slots: 3}}\nconstraints: {resources: {max_slots: 2}}",
                       "P", Workload::kTask));
}

TEST_CASE("a command mounts only paths that the cluster allows") {
  ClusterFacts cluster;
  cluster.host_paths = {"/data"};
  const auto refused = [&](const std::string& mounts) {
    const auto parsed = parse_command("entrypoint: [x]\nbind_mounts: " + mounts, "c.yaml", {}, &cluster);
    return parsed ? std::string() : parsed.error().problems.at(0).code + parsed.error().problems.at(0).path;
  };
  CHECK(refused("[{host_path: /data/sets, container_path: sets}]").empty());
  CHECK(refused("[{host_path: /etc, container_path: /etc}]") == "E-CFG-SECURITYbind_mounts[0].host_path");
  CHECK(refused("[{host_path: /data/../etc, container_path: /etc}]") ==
        "E-CFG-SECURITYbind_mounts[0].host_path");
  CHECK(refused("[{host_path: sets, container_path: sets}]") == "E-CFG-RANGEbind_mounts[0].host_path");
}

TEST_CASE("a stored command configuration survives the round trip") {
  const CommandConfig config =
      read("entrypoint: [x]\nwork_dir: /tmp\nbind_mounts: [{host_path: /a, container_path: b}]");
  auto again = command_from_resolved(config.resolved);
  REQUIRE(again);
  CHECK(again->resolved == config.resolved);
  CHECK(again->entrypoint == config.entrypoint);
}

TEST_CASE("all problems of a command configuration are reported at once") {
  const auto parsed = parse_command(
      "entrypoint: []\nresources: {slots: -1, slot: 1, priority: 100}\nsearcher: {}\n", "c.yaml", {});
  REQUIRE_FALSE(parsed);
  std::vector<std::string> said;
  for (const Problem& problem : parsed.error().problems) said.push_back(problem.code + " " + problem.path);
  CHECK(said == std::vector<std::string>{"E-CFG-RANGE entrypoint", "E-CFG-RANGE resources.slots",
                                         "E-CFG-UNKNOWN resources.slot", "E-CFG-RANGE resources.priority",
                                         "E-CFG-UNKNOWN searcher"});
}

TEST_CASE("a command without an entrypoint does nothing and succeeds") {
  for (const char* yaml : {"{}", "", "description: x"})
    CHECK(read(yaml).entrypoint == std::vector<std::string>{"/bin/sh", "-c", "true"});
}

TEST_CASE("a command with a blank entrypoint is refused") {
  for (const char* yaml : {"entrypoint: []", "entrypoint: ''", "entrypoint: [' ']", "entrypoint: 7", "[a]"}) {
    INFO(yaml);
    CHECK_FALSE(parse_command(yaml, "c.yaml", {}));
  }
}

TEST_CASE("shared memory of a command has the size of its configuration, or of the master's defaults") {
  const auto size = [](const CommandConfig& config) {
    return config.resolved.at("resources").at("shm_size");
  };
  const auto parsed = parse_command("entrypoint: x\nresources: {shm_size: 1.5g}", "c.yaml", {});
  REQUIRE(parsed);
  CHECK(parsed->warnings.empty());
  CHECK(size(parsed->config) == 1'610'612'736);
  Defaults defaults;
  defaults.task_container_defaults = {{"resources", {{"shm_size", 4096}}}};
  CHECK(size(read("entrypoint: x", defaults)) == 4096);
}

TEST_CASE("a command has the defaults of its pool, over those of the master") {
  Defaults defaults;
  defaults.default_pool = "default";
  defaults.task_container_defaults = {{"resources", {{"shm_size", 4096}}}};
  defaults.pool_task_defaults["large"].config = {{"resources", {{"shm_size", 8192}}}};
  const auto size = [&](const std::string& pool) {
    return read("entrypoint: x\nresources: {resource_pool: " + pool + "}", defaults)
        .resolved.at("resources")
        .at("shm_size");
  };
  CHECK(size("large") == 8192);
  CHECK(size("default") == 4096);
}

TEST_CASE("a command larger than every agent is refused, also without launch_error") {
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
  CHECK_FALSE(parse_command("entrypoint: x\nresources: {slots: 3}", "c.yaml", {}, &facts));
}

}  // namespace
}  // namespace det::expconf
