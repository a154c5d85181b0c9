// Runs cases/*.case: a document and the problems, warnings and resolved values that it must give.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <set>

#include "case_file.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/expconf/entrypoint.h"
#include "common/expconf/parse.h"
#include "common/storage/policy.h"
#include "common/yaml/yaml.h"
#include "test_paths.h"

namespace det::expconf::test {
namespace {

/// Prefix of a problem's position: none for the user's file and the command line, "T:" for the template, "P:"
/// for the policies, "M:" for the master.
std::string origin(const Problem& problem) {
  if (problem.file == (problem.line == 0 ? "command line" : "t.yaml")) return "";
  return problem.file == "T" || problem.file == "P" ? problem.file + ":"
         : problem.file.starts_with("the master")   ? "M:"
                                                    : problem.file + ":";
}

/// `expected` is "4:15 max_restarts E-CFG-RANGE words". The words may occur anywhere in the message; column 0
/// and path * match any.
bool matches(const std::string& expected, const Problem& problem) {
  const std::vector<std::string> parts = split(expected, ' ');
  if (parts.size() < 3) return false;
  const std::string line = origin(problem) + std::to_string(problem.line) + ":";
  const bool there = parts[0] == line + std::to_string(problem.column) || (parts[0] == line + "0");
  const bool path = parts[1] == "*" || parts[1] == (problem.path.empty() ? "-" : problem.path);
  const std::string words = join({parts.begin() + 3, parts.end()}, " ");
  return there && path && parts[2] == problem.code && problem.message.find(words) != std::string::npos;
}

void check_lines(const std::vector<std::string>& expected, const std::vector<Problem>& got) {
  std::vector<std::string> lines;
  for (const Problem& problem : got) lines.push_back(to_string(problem));
  INFO("got:\n" << join(lines, "\n"));
  REQUIRE(expected.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    INFO("line " << i + 1 << ": " << expected[i]);
    CHECK(matches(expected[i], got[i]));
  }
}

void check_value(const std::string& expectation, const Json& resolved) {
  const std::size_t equals = expectation.find(" = ");
  const Json* value = find_path(resolved, expectation.substr(0, equals));
  INFO(expectation);
  REQUIRE(value != nullptr);
  CHECK(dump_json(*value) == expectation.substr(equals + 3));
}

/// A pool of eight slots with at most four on one machine, a second pool, one project, one mountable
/// directory.
ClusterFacts small_cluster(bool launch_error, const Json& own) {
  const auto storages = std::make_shared<storage::StoragePolicy>(
      storage::StoragePolicy{.own = own,
                             .data_dir = {},
                             .directories = {"/shared"},
                             .buckets = {},
                             .named = {{.name = "archive",
                                        .location = {{"type", "shared_fs"}, {"host_path", "/archive"}},
                                        .access_key = {},
                                        .secret_key = {},
                                        .per_workspace = true}}});
  return {.pools = {"default", "gpu"},
          .unfit = [](const std::string& pool, int slots, bool single_node) -> std::string {
            const int most = single_node ? 4 : 8;
            return pool != "default" || slots <= most ? "" : "pool default holds " + std::to_string(most);
          },
          .default_pool = "default",
          .launch_error = launch_error,
          .has_project =
              [](const std::string& workspace, const std::string& project) {
                return workspace == "Uncategorized" && project == workspace;
              },
          .host_paths = {"/shared"},
          .storage_refusal =
              [storages](const Json& storage) {
                const Status allowed = storages->check(storage);
                return allowed ? std::string() : allowed.error().message;
              },
          .storage_section = [storages](const std::string& name) { return storages->section_of(name, 7); },
          .has_trial = [](std::int64_t trial) { return trial == 1; },
          .has_checkpoint = [](const std::string& uuid) { return uuid == "there"; }};
}

std::string document_of(const Case& test) {
  std::string document = test.document;
  if (test.has("base")) document += "entrypoint: run\nsearcher: {name: single, metric: loss}\n";
  if (test.has("random"))
    document += "entrypoint: run\nsearcher: {name: random, metric: loss, max_trials: 2}\n";
  if (test.has("entrypoint")) document += "entrypoint: run\n";
  return document;
}

Defaults defaults_of(const Case& test) {
  Defaults defaults{.checkpoint_storage = nullptr, .experiment_seed = 99, .name = "given"};
  const auto layer = [&](const char* name) { return test.layers.contains(name) ? test.layers.at(name) : ""; };
  if (test.has("storage"))
    defaults.checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/cluster"}, {"save_trial_best", 7}};
  if (test.layers.contains("storage"))
    defaults.checkpoint_storage = to_json(parse_yaml(layer("storage"), "M").value());
  if (test.layers.contains("tasks")) {
    const auto tasks = read_task_defaults(parse_yaml(layer("tasks"), "M").value());
    INFO((tasks ? "" : tasks.error().message));
    REQUIRE(tasks);
    defaults.task_container_defaults = tasks->config;
  }
  if (test.layers.contains("pool_tasks")) {
    const auto tasks = read_task_defaults(parse_yaml(layer("pool_tasks"), "M").value());
    REQUIRE(tasks);
    defaults.default_pool = "default";
    defaults.pool_task_defaults["default"] = *tasks;
  }
  if (test.layers.contains("template")) defaults.template_ = Document{"T", layer("template")};
  if (test.layers.contains("policies")) defaults.policies.push_back({"P", layer("policies")});
  if (test.layers.contains("more_policies")) defaults.policies.push_back({"W", layer("more_policies")});
  return defaults;
}

Result<Parsed> read(const Case& test) {
  std::vector<Override> overrides;
  for (const std::string& assignment : test.overrides) overrides.push_back({assignment});
  const Defaults defaults = defaults_of(test);
  const ClusterFacts cluster = small_cluster(!test.has("queue"), defaults.checkpoint_storage);
  TRY_ASSIGN(Parsed parsed, parse(document_of(test), "t.yaml", defaults, overrides,
                                  test.has("cluster") ? &cluster : nullptr));
  if (test.has("context")) TRY(check_entrypoint(parsed.config, {"train", "pkg/net.cpp"}, "command line"));
  return parsed;
}

/// The CPU time of a call. A slow call is repeated: on a busy machine it measures the others as well.
template <typename Call>
Duration fastest(const Call& call) {
  Duration least = Duration::max();
  for (int i = 0; i < 5 && least >= kMaxParseTime; ++i) {
    const Duration begin = cpu_now();
    call();
    least = std::min(least, cpu_now() - begin);
  }
  return least;
}

/// True for "4:15 …" and "T:4:15 …", false for "name = …".
bool is_problem(const std::string& line) {
  const std::size_t colon = line.find(':');
  return colon != std::string::npos && colon < line.find(' ') && line.find(" = ") == std::string::npos;
}

void run(const Case& test) {
  std::vector<std::string> problems, warnings, values;
  for (const std::string& line : test.expected) {
    if (line.starts_with("warning ")) {
      warnings.push_back(line.substr(8));
    } else {
      (is_problem(line) ? problems : values).push_back(line);
    }
  }
  Result<Parsed> parsed = fail(Code::kInternal, "not read");
  CHECK(fastest([&] { parsed = read(test); }) < kMaxParseTime);
  if (!parsed) {
    CHECK(parsed.error().code == Code::kInvalidArgument);
    return check_lines(problems, parsed.error().problems);
  }
  check_lines(problems, {});
  check_lines(warnings, parsed->warnings);
  for (const std::string& value : values) check_value(value, parsed->config.resolved);
  // The master stores an accepted configuration and reads it back at a restart. A fork submits it again.
  const std::string stored = dump_json(parsed->config.resolved);
  const auto back = from_resolved(*parse_json(stored));
  INFO(stored << (back ? "" : back.error().message));
  REQUIRE(back);
  CHECK(nlohmann::json(back->resolved) == nlohmann::json(parsed->config.resolved));
  const auto again = parse(stored, "stored", {});
  INFO((again ? "" : again.error().message));
  CHECK(again.has_value());
}

}  // namespace

TEST_CASE("every case in cases/ gives its expected problems and values") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("/tests/master/expconf/cases"))) {
    const std::vector<Case> cases = read_cases(entry.path().string());
    CHECK(!cases.empty());
    ++files;
    for (const Case& test : cases) {
      INFO(entry.path().filename().string() << ": " << test.title);
      run(test);
    }
  }
  CHECK(files >= 9);
}

TEST_CASE("the cases cover all 86 kinds of invalid configuration") {
  std::set<std::string> ids;
  for (const Case& test : read_cases(source_path("/tests/master/expconf/cases/invalid.case"))) {
    INFO(test.title);
    CHECK(!test.expected.empty());
    ids.insert(test.title.substr(0, 3));
  }
  CHECK(ids.size() == 86);
  CHECK(*ids.begin() == "C01");
  CHECK(*ids.rbegin() == "C86");
}

}  // namespace det::expconf::test
