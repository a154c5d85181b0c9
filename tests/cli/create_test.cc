// Runs `det experiment create` and `fork` against a fake master.
#include <catch2/catch.hpp>

#include "common/archive/archive.h"
#include "common/base/text.h"
#include "det/status.pb.h"
#include "fake_master.h"

namespace det::cli::test {
namespace {

constexpr const char* kGood = "name: x\nentrypoint: run\nsearcher: {name: single, metric: loss}\n";

struct Project {
  explicit Project(const std::string& config)
      : home(TemporaryDirectory::create().value()), dir(home.path() + "/mnist") {
    REQUIRE(make_directories(dir));
    REQUIRE(write_file_atomic(dir + "/const.yaml", config));
    REQUIRE(write_file_atomic(dir + "/model_def.cpp", std::string(2000, 'x')));
  }
  TemporaryDirectory home;
  std::string dir;
};

/// Returns `bytes` bytes (a multiple of 8) that gzip cannot shorten.
std::string incompressible(std::size_t bytes) {
  std::string noise;
  for (std::uint64_t x = 1; noise.size() < bytes;) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    noise.append(reinterpret_cast<const char*>(&x), 8);
  }
  return noise;
}

v1::LogEntry line(int id, const std::string& text) {
  v1::LogEntry entry;
  entry.set_id(std::to_string(id));
  entry.set_message("[t] || INFO: " + text);
  return entry;
}

v1::Experiment experiment(v1::State state) {
  v1::Experiment made;
  made.set_id(1);
  made.set_state(state);
  return made;
}

}  // namespace

TEST_CASE("create sends the configuration and the directory and prints Determined's lines") {
  FakeMaster master;
  const Project project(kGood);
  const auto done = master.det({"experiment", "create", "const.yaml", "."}, project.dir);
  CHECK(done.err == "warning: be careful\nWeb UI: " + master.url() + "/det/experiments/1\n");
  CHECK(done.out ==
        "Preparing files (../mnist) to send to master... 2.0KB and 2 files\n"
        "Created experiment 1\n"
        "Activated experiment 1\n");
  CHECK(done.status.code == 0);
  REQUIRE(master.world.created.size() == 1);
  const v1::CreateExperimentRequest& sent = master.world.created.front();
  CHECK(sent.config() == kGood);
  CHECK(sent.config_name() == "const.yaml");
  CHECK(sent.activate());
  CHECK(sent.request_id().size() == 36);
  const auto files = check_archive(master.world.archives.front());
  REQUIRE(files);
  CHECK(files->size() == 2);
}

TEST_CASE("create --paused does not activate, and --config overrides keys") {
  FakeMaster master;
  const Project project(kGood);
  const auto done = master.det(
      {"e", "create", "--config", "max_restarts=1", "--config", "data.dir=/x", "--paused", "const.yaml", "."},
      project.dir);
  CHECK(done.status.code == 0);
  CHECK(done.out.find("Activated") == std::string::npos);
  REQUIRE(master.world.created.size() == 1);
  CHECK_FALSE(master.world.created.front().activate());
  const std::string config = master.world.created.front().config();
  CHECK(config.find("max_restarts: 1\n") != std::string::npos);
  CHECK(config.find("data:\n  dir: /x\n") != std::string::npos);
}

TEST_CASE("an invalid configuration prints all problems, exits with 2 and sends nothing") {
  FakeMaster master;
  const Project project(
      "name: x\nentrypoint: run\nhyperparameterz: {}\nmax_restarts: -1\nsearcher: {name: single}\n");
  const auto done =
      master.det({"experiment", "create", "const.yaml", ".", "--config", "debug=5"}, project.dir, "");
  CHECK(done.status.code == 2);
  CHECK(done.out.empty());
  for (const char* part : {"const.yaml:3:1 ", "hyperparameterz", "E-CFG-UNKNOWN",
                           "did you mean \"hyperparameters\"?", "const.yaml:4:15 ", "E-CFG-RANGE",
                           "const.yaml:5:11 ", "searcher.metric", "E-CFG-MISSING", "command line "}) {
    INFO(part << " in\n" << done.err);
    CHECK(done.err.find(part) != std::string::npos);
  }
  CHECK(split(done.err, '\n').size() == 5);
  CHECK(master.world.created.empty());
}

TEST_CASE("problems found by the master are printed, with exit code 2") {
  FakeMaster master;
  v1::Problems problems;
  v1::Problem& problem = *problems.add_problems();
  problem.set_code("E-CFG-REF");
  problem.set_path("resources.resource_pool");
  problem.set_message("no such pool; there is: default");
  problem.set_file("const.yaml");
  problem.set_line(4);
  problem.set_column(2);
  google::rpc::Status status;
  status.set_code(3);
  status.add_details()->PackFrom(problems);
  master.world.refuse_create = {grpc::StatusCode::INVALID_ARGUMENT, "refused", status.SerializeAsString()};
  const Project project(kGood);
  const auto done = master.det({"experiment", "create", "const.yaml", "."}, project.dir);
  CHECK(done.status.code == 2);
  CHECK(done.err == "const.yaml:4:2  resources.resource_pool  E-CFG-REF  no such pool; there is: default\n");
}

TEST_CASE("an upload with a lost reply is repeated with the same request id") {
  FakeMaster master;
  master.world.uploads_lost = 2;
  const Project project(kGood);
  const auto done = master.det({"experiment", "create", "const.yaml", "."}, project.dir);
  CHECK(done.status.code == 0);
  REQUIRE(master.world.created.size() == 3);
  CHECK(master.world.created[0].request_id() == master.world.created[2].request_id());
}

TEST_CASE("a code archive of several chunks arrives complete") {
  FakeMaster master;
  const Project project(kGood);
  const std::string noise = incompressible(3 << 20);
  REQUIRE(write_file_atomic(project.dir + "/data.bin", noise));
  const auto done = master.det({"experiment", "create", "const.yaml", "."}, project.dir);
  CHECK(done.status.code == 0);
  REQUIRE(master.world.archives.size() == 1);
  const auto entries = read_archive(master.world.archives.front());
  REQUIRE(entries);
  bool found = false;
  for (const ArchiveEntry& entry : *entries)
    found = found || (entry.path == "data.bin" && entry.content == noise);
  CHECK(found);
}

TEST_CASE("-f prints the log, resumes after a disconnection, and exits with the experiment's outcome") {
  for (const auto& [state, code] : {std::pair(v1::STATE_COMPLETED, 0), std::pair(v1::STATE_ERROR, 1)}) {
    FakeMaster master;
    v1::Trial trial;
    trial.set_id(7);
    master.world.trials = {trial};
    master.world.experiments[1] = experiment(state);
    master.world.log = {line(10, "first"), line(11, "second"), line(12, "third")};
    master.world.log_cut_after = 2;
    const Project project(kGood);
    const auto done = master.det({"experiment", "create", "const.yaml", ".", "-f"}, project.dir);
    CHECK(done.status.code == code);
    const std::string expected =
        "Waiting for first trial to begin...\n"
        "Following first trial with ID 7\n"
        "[t] || INFO: first\n"
        "[t] || INFO: second\n"
        "[t] || INFO: third\n";
    INFO(done.out << done.err);
    CHECK(done.out.find(expected) != std::string::npos);
    REQUIRE(master.world.log_requests.size() == 2);
    CHECK(master.world.log_requests[1].after_id() == 11);
  }
}

TEST_CASE("-f ends when an experiment ends without a trial") {
  FakeMaster master;
  master.world.experiments[1] = experiment(v1::STATE_CANCELED);
  const Project project(kGood);
  const auto done = master.det({"experiment", "create", "const.yaml", ".", "-f"}, project.dir);
  CHECK(done.status.code == 1);
  CHECK(done.out.find("Experiment 1 is CANCELED\n") != std::string::npos);
}

TEST_CASE("a code archive of several chunks is sent once, and a changed one again") {
  FakeMaster master;
  const Project project(kGood);
  REQUIRE(write_file_atomic(project.dir + "/data.bin", incompressible(2 << 20)));
  const auto create = [&] {
    const auto done = master.det({"experiment", "create", "const.yaml", "."}, project.dir);
    INFO(done.err);
    CHECK(done.status.code == 0);
    return done.out.substr(done.out.find("Created"));
  };
  CHECK(create() == "Created experiment 1\nActivated experiment 1\n");
  CHECK(master.world.archives.size() == 1);
  CHECK(create() == "Created experiment 2\nActivated experiment 2\n");
  CHECK(master.world.archives.size() == 1);
  REQUIRE(master.world.by_digest.size() == 2);
  CHECK(master.world.by_digest[0].code_archive() == master.world.by_digest[1].code_archive());
  CHECK(master.world.by_digest[1].create().config() == kGood);

  REQUIRE(write_file_atomic(project.dir + "/model_def.cpp", "int x;"));
  CHECK(create() == "Created experiment 1\nActivated experiment 1\n");
  CHECK(master.world.archives.size() == 2);
  CHECK(master.world.by_digest.size() == 3);
}

TEST_CASE("a code archive of one chunk is sent without a question") {
  FakeMaster master;
  const Project project(kGood);
  for (int i = 0; i < 2; ++i)
    CHECK(master.det({"experiment", "create", "const.yaml", "."}, project.dir).status.code == 0);
  CHECK(master.world.archives.size() == 2);
  CHECK(master.world.by_digest.empty());
}

TEST_CASE("files matched by .detignore are not sent") {
  FakeMaster master;
  const Project project(kGood);
  REQUIRE(write_file_atomic(project.dir + "/.detignore", "*.log\n!keep.log\n/data/\n"));
  REQUIRE(make_directories(project.dir + "/data"));
  for (const char* name : {"a.log", "keep.log", "data/x"})
    REQUIRE(write_file_atomic(project.dir + "/" + name, "x"));
  CHECK(master.det({"experiment", "create", "const.yaml", "."}, project.dir).status.code == 0);
  REQUIRE(master.world.archives.size() == 1);
  const auto items = check_archive(master.world.archives.front());
  REQUIRE(items);
  std::vector<std::string> paths;
  for (const ArchiveItem& item : *items) paths.push_back(item.path);
  CHECK(paths == std::vector<std::string>{".detignore", "const.yaml", "keep.log", "model_def.cpp"});
}

TEST_CASE("a cluster test trains one batch, follows it and archives it; a failed one prints the log") {
  FakeMaster master;
  const Project project(
      "name: x\nentrypoint: run\nsearcher: {name: random, metric: loss, max_trials: 8, max_length: {batches: "
      "100}}\n");
  master.world.experiments[1] = experiment(v1::STATE_COMPLETED);
  const auto done = master.det({"experiment", "create", "const.yaml", ".", "--test-mode"}, project.dir);
  INFO(done.err);
  CHECK(done.status.code == 0);
  CHECK(done.out.find("one batch was trained, validated and saved\n") != std::string::npos);
  CHECK(master.world.actions == std::vector<std::string>{"archive 1"});
  REQUIRE(master.world.created.size() == 1);
  const std::string config = master.world.created.front().config();
  CHECK(config.find("name: single\n  metric: loss\n") != std::string::npos);
  CHECK(config.find("max_trials") == std::string::npos);
  master.world.experiments[1] = experiment(v1::STATE_ERROR);
  master.world.trials.emplace_back().set_id(5);
  master.world.log.push_back(line(1, "no such layer"));
  const auto failed = master.det({"experiment", "create", "const.yaml", ".", "-t"}, project.dir);
  CHECK(failed.status.code == 1);
  CHECK(failed.out.find("no such layer") != std::string::npos);
  CHECK(failed.err.find("det: the test ended with state ERROR") != std::string::npos);
}

TEST_CASE("--local is limited to tests of trial classes") {
  FakeMaster master;
  const Project project(kGood);
  const auto alone = master.det({"experiment", "create", "const.yaml", ".", "--local"}, project.dir);
  CHECK(alone.status.code == 2);
  CHECK(alone.err == "det: --local runs only tests: say --local --test\n");
  const auto command =
      master.det({"experiment", "create", "const.yaml", ".", "--local", "--test"}, project.dir);
  CHECK(command.status.code == 2);
  CHECK(command.err.find("runs a trial class") != std::string::npos);
  CHECK(master.det({"experiment", "create", "const.yaml", ".", "-t", "-f"}, project.dir).status.code == 2);
  CHECK(master.world.created.empty());
}

TEST_CASE("fork creates the experiment in the project of its parent unless --config names another") {
  FakeMaster master;
  v1::Experiment parent = experiment(v1::STATE_COMPLETED);
  parent.set_project_id(5);
  parent.set_original_config(std::string(kGood) + "workspace: vision\nproject: cats\n");
  master.world.experiments[1] = parent;
  const auto done = master.det({"experiment", "fork", "1", "--config", "max_restarts=1"});
  CHECK(done.out == "Created experiment 2\n");
  CHECK(master.det({"experiment", "fork", "1", "--config", "project=dogs"}).status.code == 0);
  REQUIRE(master.world.created.size() == 2);
  CHECK(master.world.created[0].parent_id() == 1);
  CHECK(master.world.created[0].project_id() == 5);
  CHECK(master.world.created[1].project_id() == 0);
}

TEST_CASE("fork refuses masked secrets and names the fields to set") {
  FakeMaster master;
  v1::Experiment parent = experiment(v1::STATE_COMPLETED);
  parent.set_original_config(std::string(kGood) +
                             "description: \"****\"\n"
                             "data: {secrets: {key: \"****\"}}\n"
                             "environment: {environment_variables: [A=1, HF_TOKEN=****]}\n");
  master.world.experiments[1] = parent;
  const auto refused = master.det({"experiment", "fork", "1"});
  CHECK(refused.status.code == 2);
  CHECK(has(refused.err, "set data.secrets.key, environment.environment_variables with --config"));
  CHECK(master.world.created.empty());
  const auto done = master.det({"experiment", "fork", "1", "--config", "data.secrets.key=k", "--config",
                                "environment.environment_variables=[HF_TOKEN=t]"});
  CHECK(done.status.code == 0);
  REQUIRE(master.world.created.size() == 1);
  CHECK(has(master.world.created[0].config(), "HF_TOKEN=t"));
}

}  // namespace det::cli::test
