// Runs the real det-agent with real tasks against a fake master.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>

#include "agent/prepare.h"
#include "agent/task/processes.h"
#include "common/archive/archive.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/base/wait.h"
#include "common/build/model_build.h"
#include "common/crypto/digest.h"
#include "fake_master.h"
#include "need.h"
#include "test_paths.h"

using namespace det;
using namespace det::agent;
using namespace std::chrono_literals;

namespace {

using State = v1::AllocationUpdate;
constexpr const char* kToken = "0123456789abcdef0123456789abcdef0123456789abcdef";

/// A fake master, a data directory, and a det-agent that can be killed and started again.
struct Cluster {
  explicit Cluster(std::vector<std::string> options = {}) : options_(std::move(options)) { start(); }
  ~Cluster() {
    if (agent) agent->stop(0s);
    CHECK(kill_with_environment("DET_CLUSTER_ID=" + cluster_id, 10s));
  }

  void start() {
    // The agent has joined: the token of its calls is in its data directory.
    const std::string tls = dir.path() + "/data/tls";
    need(make_directories(tls, 0700));
    if (!path_exists(tls + "/agent.token")) need(write_file_atomic(tls + "/agent.token", kToken, 0600));
    std::vector<std::string> argv{program,
                                  "--master",
                                  "127.0.0.1:" + std::to_string(port),
                                  "--data-dir",
                                  dir.path() + "/data",
                                  "--id",
                                  "a1",
                                  "--artificial-slots",
                                  std::to_string(artificial_slots),
                                  "--bind-mounts",
                                  dir.path() + ":rw"};
    argv.insert(argv.end(), options_.begin(), options_.end());
    agent = need(Child::spawn({.argv = argv,
                               .env = environment_with(environment),
                               .err = Stream::file(dir.path() + "/agent.log")}));
  }
  void restart_master(int lease = 600) {
    master.reset();
    master = std::make_unique<FakeMaster>(port, cluster_id, lease);
  }
  void kill_agent() {
    need(agent->signal(SIGKILL));
    REQUIRE(agent->wait(10s));
  }
  v1::Hello hello() {
    auto batch = master->hellos.pop_batch(1, 20s);
    if (batch.empty()) FAIL("no hello came\n" << need(read_file(dir.path() + "/agent.log")));
    return batch[0];
  }
  /// `build`: the allocation builds this trial class.
  std::string startup_hook;  ///< of the pool
  std::string order(const std::string& script, bool list = false, const std::string& build = "") {
    const std::string id = "1." + uuid4() + ".1";
    v1::AgentCommand command;
    v1::StartAllocation* start = command.mutable_start();
    start->set_allocation_id(id);
    start->set_trial_id(1);
    start->add_slots(0);
    start->set_hparams("{}");
    start->set_experiment_config("{}");
    if (!master->context.empty()) start->set_code_archive(sha256_hex(master->context));
    if (list) {
      for (const char* word : {"/bin/sh", "-c"}) start->add_entrypoint(word);
    }
    start->set_entrypoint_is_list(list);
    start->set_build(build);
    start->set_startup_hook(startup_hook);
    if (build.empty()) start->add_entrypoint(script);
    master->command(std::move(command));
    return id;
  }
  void kill(const std::string& id) {
    v1::AgentCommand command;
    command.mutable_kill()->set_allocation_id(id);
    master->command(std::move(command));
  }
  void forget(const std::string& id) {
    v1::AgentCommand command;
    command.mutable_forget()->set_allocation_id(id);
    master->command(std::move(command));
  }
  /// Reads updates until `id` is in `state`.
  v1::AllocationUpdate wait_state(const std::string& id, State::State state) {
    const MonoTime deadline = mono_now() + 60s;
    while (mono_now() < deadline) {
      for (const auto& update : master->updates.pop_batch(1, 100ms)) {
        if (update.allocation_id() == id && update.state() == state) return update;
      }
    }
    FAIL("allocation " << id << " never came to state " << state << "\n"
                       << need(read_file(dir.path() + "/agent.log")));
    return {};
  }
  v1::AllocationExit wait_end(const std::string& id) {
    return wait_state(id, State::STATE_TERMINATED).exit();
  }
  /// All log lines of `id` received so far, by line number.
  std::map<std::int64_t, std::string>& log(const std::string& id) {
    for (const auto& request : master->logs.pop_batch(10'000, 0ms)) {
      for (int i = 0; i < request.lines_size(); ++i) {
        logs_[request.allocation_id()][request.first_line() + i] = request.lines(i).text();
      }
    }
    return logs_[id];
  }
  bool logged(const std::string& id, const std::string& text) {
    const auto& lines = log(id);
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& line) { return line.second.find(text) != std::string::npos; });
  }
  bool wait_logged(const std::string& id, const std::string& text) {
    return wait_until([&] { return logged(id, text); }, 20s);
  }
  static bool alive(const std::string& id) { return !with_environment("DET_ALLOCATION_ID=" + id).empty(); }

  std::unique_ptr<FakeMaster> master = std::make_unique<FakeMaster>();
  int port = master->port();
  const std::string cluster_id = master->cluster_id;
  TemporaryDirectory dir = need(TemporaryDirectory::create());
  int artificial_slots = 2;
  std::vector<std::string> environment;  ///< additions for the next start of the agent
  std::string program = build_path("/bin/det-agent");
  std::optional<Child> agent;

 private:
  std::vector<std::string> options_;
  std::map<std::string, std::map<std::int64_t, std::string>> logs_;
};

}  // namespace

TEST_CASE("a hello carries the agent's id, pool and devices", "[agent]") {
  Cluster cluster({"--pool", "p1"});
  const v1::Hello hello = cluster.hello();
  CHECK(hello.agent_id() == "a1");
  CHECK(hello.pool() == "p1");
  CHECK(hello.instance().size() == 36);
  REQUIRE(hello.devices_size() == 2);
  CHECK(hello.devices(0).type() == "ARTIFICIAL");
  CHECK(hello.held_size() == 0);
  REQUIRE(cluster.agent->stop(20s) == ExitStatus{0, 0});
}

TEST_CASE("the exit of a command is reported after its complete log, with its exit code", "[agent]") {
  Cluster cluster;
  const std::string id =
      cluster.order("echo slots $DET_SLOT_IDS in $DET_CLUSTER_ID; echo 'ERROR: bad' >&2; exit 7");
  cluster.wait_state(id, State::STATE_RUNNING);
  const v1::AllocationExit exit = cluster.wait_end(id);
  CHECK(exit.kind() == v1::AllocationExit::KIND_FAILED);
  CHECK(exit.code() == 7);
  CHECK(exit.message() == "exit code 7\nERROR: bad");
  CHECK(cluster.logged(id, "slots [0] in " + cluster.cluster_id));
  CHECK(cluster.logged(id, "bad"));
  CHECK(cluster.logged(id, "container failed with non-zero exit code: 7"));
  const std::string listed = cluster.order("exit 0", true);
  CHECK(cluster.wait_end(listed).kind() == v1::AllocationExit::KIND_SUCCEEDED);
}

TEST_CASE("an exit is reported until the master sends forget, then the allocation's files are deleted",
          "[agent]") {
  Cluster cluster;
  const std::string id = cluster.order("exit 3");
  cluster.wait_end(id);
  cluster.kill_agent();
  cluster.hello();
  cluster.start();
  CHECK(cluster.hello().held_size() == 1);
  CHECK(cluster.wait_end(id).code() == 3);
  const auto& lines = cluster.log(id);
  CHECK(std::count_if(lines.begin(), lines.end(), [](const auto& line) {
          return line.second.find("resources failed") != std::string::npos;
        }) == 1);
  cluster.forget(id);
  CHECK(wait_until([&] { return !path_exists(cluster.dir.path() + "/data/allocations/" + id); }, 10s));
}

TEST_CASE("killing an allocation stops all its processes", "[agent]") {
  Cluster cluster;
  const std::string id =
      cluster.order("trap '' TERM; setsid sleep 1000 & echo up; while :; do sleep 0.05; done");
  REQUIRE(cluster.wait_logged(id, "up"));
  cluster.kill(id);
  CHECK(cluster.wait_end(id).kind() == v1::AllocationExit::KIND_STOPPED);
  CHECK_FALSE(Cluster::alive(id));
}

TEST_CASE("an allocation survives kill -9 of its agent without losing log lines", "[agent]") {
  Cluster cluster;
  const std::string go = cluster.dir.path() + "/go";
  const std::string id =
      cluster.order("echo before; while [ ! -e " + go + " ]; do sleep 0.02; done; echo after; exit 5");
  REQUIRE(cluster.wait_logged(id, "before"));
  cluster.kill_agent();
  REQUIRE(Cluster::alive(id));
  SECTION("the allocation still runs when the agent restarts") {
    cluster.start();
    cluster.hello();
    const v1::Hello back = cluster.hello();
    REQUIRE(back.held_size() == 1);
    CHECK(back.held(0).state() == State::STATE_RUNNING);
    need(write_file_atomic(go, ""));
  }
  SECTION("the allocation ends while the agent is down") {
    need(write_file_atomic(go, ""));
    REQUIRE(wait_until([&] { return !Cluster::alive(id); }, 10s));
    cluster.start();
  }
  CHECK(cluster.wait_end(id).code() == 5);
  CHECK(cluster.logged(id, "after"));
  CHECK(cluster.log(id).rbegin()->first == static_cast<std::int64_t>(cluster.log(id).size()));
}

TEST_CASE("an allocation with a killed supervisor is reported as lost and leaves no process", "[agent]") {
  Cluster cluster;
  const std::string id = cluster.order("setsid sleep 1000 & echo up; exec sleep 1000");
  REQUIRE(cluster.wait_logged(id, "up"));
  const ProcessId supervisor =
      need(TaskDir(cluster.dir.path() + "/data/allocations/" + id).read_supervisor());
  SECTION("while the agent watches") { ::kill(supervisor.pid, SIGKILL); }
  SECTION("while no agent runs") {
    cluster.kill_agent();
    ::kill(supervisor.pid, SIGKILL);
    cluster.start();
  }
  CHECK(cluster.wait_end(id).kind() == v1::AllocationExit::KIND_LOST);
  CHECK_FALSE(Cluster::alive(id));
}

TEST_CASE("an allocation keeps running while the master is away for less than the lease", "[agent]") {
  Cluster cluster;
  const std::string go = cluster.dir.path() + "/go";
  const std::string id = cluster.order("echo up; while [ ! -e " + go + " ]; do sleep 0.02; done; echo after");
  REQUIRE(cluster.wait_logged(id, "up"));
  cluster.restart_master();
  const v1::Hello hello = cluster.hello();
  REQUIRE(hello.held_size() == 1);
  CHECK(hello.held(0).allocation_id() == id);
  need(write_file_atomic(go, ""));
  CHECK(cluster.wait_end(id).kind() == v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(cluster.logged(id, "after"));
}

TEST_CASE("a restarted agent that does not reach the master keeps the lease of the master", "[agent]") {
  Cluster cluster;
  cluster.hello();
  cluster.restart_master(5);
  cluster.hello();
  const std::string id = cluster.order("echo up; exec sleep 1000");
  REQUIRE(cluster.wait_logged(id, "up"));
  cluster.kill_agent();
  cluster.master.reset();
  cluster.start();
  CHECK(wait_until([&] { return !Cluster::alive(id); }, 60s));
  cluster.restart_master();
  CHECK_THAT(cluster.wait_end(id).message(), Catch::Contains("no contact with the master for 5s"));
}

TEST_CASE("an agent disconnected for longer than the lease stops its allocations", "[agent]") {
  Cluster cluster;
  cluster.restart_master(1);
  cluster.hello();
  const std::string id = cluster.order("echo up; exec sleep 1000");
  REQUIRE(cluster.wait_logged(id, "up"));
  cluster.master.reset();
  CHECK(wait_until([&] { return !Cluster::alive(id); }, 20s));
  cluster.restart_master();
  const v1::AllocationExit exit = cluster.wait_end(id);
  CHECK(exit.kind() == v1::AllocationExit::KIND_STOPPED);
  CHECK_THAT(exit.message(), Catch::Contains("no contact with the master"));
}

TEST_CASE("SIGTERM ends the agent and reports its allocations as lost", "[agent]") {
  Cluster cluster({"--stop-timeout", "1s"});
  const std::string id = cluster.order("echo up; exec sleep 1000");
  REQUIRE(cluster.wait_logged(id, "up"));
  need(cluster.agent->signal(SIGTERM));
  CHECK(cluster.wait_end(id).kind() == v1::AllocationExit::KIND_LOST);
  CHECK(cluster.agent->wait(20s) == ExitStatus{0, 0});
  CHECK_FALSE(Cluster::alive(id));
}

TEST_CASE("an agent retries after its hello was refused", "[agent]") {
  Cluster cluster;
  cluster.hello();
  cluster.kill_agent();
  cluster.master->refuse_hello = grpc::ALREADY_EXISTS;
  cluster.start();
  cluster.hello();
  cluster.master->refuse_hello = 0;
  cluster.hello();
  cluster.wait_end(cluster.order("exit 0"));
  CHECK_THAT(need(read_file(cluster.dir.path() + "/agent.log")), Catch::Contains("refused for the test"));
}

TEST_CASE("the context is fetched once, unpacked, and its startup hook runs first", "[agent]") {
  Cluster cluster;
  cluster.master->context =
      need(pack_entries({{.path = "startup-hook.sh", .content = "echo hook in $PWD\nexport FROM_HOOK=yes\n"},
                         {.path = "data/x.txt", .content = "content"}}));
  const std::string first = cluster.order("cat data/x.txt; echo; echo hook said $FROM_HOOK");
  CHECK(cluster.wait_end(first).kind() == v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(cluster.logged(first, "content"));
  CHECK(cluster.logged(first, "hook said yes"));
  CHECK(cluster.logged(first, "/workdir"));
  CHECK(cluster.wait_end(cluster.order("true")).kind() == v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(cluster.master->context_requests == 1);
}

TEST_CASE("the startup hook of the pool runs before that of the context", "[agent]") {
  Cluster cluster;
  cluster.master->context =
      need(pack_entries({{.path = "startup-hook.sh", .content = "echo context after $FROM_POOL\n"}}));
  cluster.startup_hook = "echo 'pool first'\nexport FROM_POOL=pool\n";
  const std::string id = cluster.order("echo task after $FROM_POOL");
  CHECK(cluster.wait_end(id).kind() == v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(cluster.logged(id, "pool first"));
  CHECK(cluster.logged(id, "context after pool"));
  CHECK(cluster.logged(id, "task after pool"));
  cluster.startup_hook = "exit 9";
  const std::string failing = cluster.order("echo not here");
  CHECK(cluster.wait_end(failing).code() == 9);
  CHECK_FALSE(cluster.logged(failing, "not here"));
}

TEST_CASE("a failing startup hook fails the allocation with its exit code", "[agent]") {
  Cluster cluster;
  cluster.master->context =
      need(pack_entries({{.path = "startup-hook.sh", .content = "(exit 9)\necho not here\n"}}));
  const std::string id = cluster.order("echo nor here");
  const v1::AllocationExit exit = cluster.wait_end(id);
  CHECK(exit.kind() == v1::AllocationExit::KIND_FAILED);
  CHECK(exit.code() == 9);
  CHECK_FALSE(cluster.logged(id, "here"));
}

TEST_CASE("a failing step of a startup hook is named with its line", "[agent]") {
  if (!path_exists("/bin/bash")) return;  // other shells do not know the line
  Cluster cluster;
  cluster.master->context =
      need(pack_entries({{.path = "startup-hook.sh",
                          .content = "set -e\nprepare() {\n  ls /absent\n}\nprepare\necho not here\n"}}));
  const std::string id = cluster.order("echo nor here");
  const v1::AllocationExit exit = cluster.wait_end(id);
  CHECK(exit.kind() == v1::AllocationExit::KIND_FAILED);
  CHECK_THAT(exit.message(), Catch::Contains("\nerror: startup-hook.sh, line 3: ls /absent: exit code 2"));
  CHECK_FALSE(cluster.logged(id, "here"));
}

TEST_CASE("a context that cannot be unpacked fails the allocation with a log line", "[agent]") {
  Cluster cluster;
  cluster.master->context = std::string(1000, 'x');
  const std::string id = cluster.order("true");
  CHECK(cluster.wait_end(id).kind() == v1::AllocationExit::KIND_FAILED);
  CHECK(cluster.logged(id, "could not be prepared"));
}

TEST_CASE("responding CUDA devices become slots, and a task sees only the devices of its slots", "[agent]") {
  Cluster cluster;
  cluster.hello();
  cluster.kill_agent();
  cluster.environment = {"LD_LIBRARY_PATH=" + build_path("/tests/fake_nvml")};
  cluster.artificial_slots = 0;
  cluster.start();
  const v1::Hello hello = cluster.hello();
  REQUIRE(hello.devices_size() == 2);
  CHECK(hello.devices(0).type() == "CUDA");
  CHECK(hello.devices(0).brand() == "Imaginary 9000");
  CHECK(hello.devices(0).uuid() != hello.devices(1).uuid());
  const std::string id = cluster.order("echo sees $CUDA_VISIBLE_DEVICES.");
  cluster.wait_end(id);
  CHECK(cluster.logged(id, "sees " + hello.devices(0).uuid() + "."));
}

TEST_CASE("a second agent on the same data directory is refused", "[agent]") {
  Cluster cluster;
  cluster.hello();
  const ProcessResult second =
      need(run_process({.argv = {cluster.program, "--data-dir", cluster.dir.path() + "/data"}}));
  CHECK(second.status == ExitStatus{1, 0});
  CHECK_THAT(second.err, Catch::Contains("another det-agent uses"));
}

TEST_CASE("invalid settings are a usage error that names them", "[agent]") {
  const std::string program = build_path("/bin/det-agent");
  const ProcessResult bad = need(run_process({.argv = {program, "--slot-type", "gpu", "--masterr", "x"}}));
  CHECK(bad.status == ExitStatus{2, 0});
  CHECK_THAT(bad.err, Catch::Contains("masterr"));
  CHECK(need(run_process({.argv = {program, "--help"}})).ok());
  CHECK_THAT(need(run_process({.argv = {program, "--version"}})).out, Catch::StartsWith("det-agent "));
}

TEST_CASE("a trial class is compiled and run by det-harness; a compile error fails the trial with its line",
          "[agent]") {
  // A separate installation prefix: the real agent, and a stub harness and recipe that do not need LibTorch.
  const TemporaryDirectory prefix = need(TemporaryDirectory::create());
  REQUIRE(::chmod(prefix.path().c_str(), 0755) == 0);
  need(make_directories(prefix.path() + "/bin"));
  need(make_directories(prefix.path() + "/share/det"));
  for (const std::string name : {"det-agent", "det-supervisor", "det-task-init"}) {
    const std::string bytes = need(read_file(build_path("/bin/") + name, 1 << 30));
    need(write_file_atomic(prefix.path() + "/bin/" + name, bytes, 0755));
  }
  need(write_file_atomic(prefix.path() + "/bin/det-harness",
                         "#!/bin/sh\necho \"harness $1 ${3##*/}\"\ntest -s \"${3%:*}\"\n", 0755));
  need(write_file_atomic(
      prefix.path() + "/share/det/model_build.json",
      R"({"sdk_id":"s","library":"LibTorch 9.9, without CUDA","compiler":"c++","cxx_flags":["-fPIC"],"include_dirs":[],"link_flags":["-shared"],)"
      R"("wrapper":"#include \"{module}.cpp\"\n{class} the_trial;\n"})"));
  CHECK_THAT(need(run_process({.argv = {prefix.path() + "/bin/det-agent", "--version"}})).out,
             Catch::EndsWith(" (LibTorch 9.9, without CUDA)\n"));
  Cluster cluster;
  cluster.agent->stop(15s);
  cluster.program = prefix.path() + "/bin/det-agent";
  cluster.start();
  cluster.master->context = need(pack_entries({{.path = "model_def.cpp", .content = "struct Net {};\n"}}));
  const std::string good = cluster.order("model_def:Net");
  cluster.wait_state(good, State::STATE_STARTING);
  CHECK(cluster.wait_end(good).kind() == v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(cluster.logged(good, "harness --model-dir model.so:Net"));

  // A build ends without a process; its message is the digest of the library.
  const std::string build = cluster.order("", false, "model_def:Net");
  const v1::AllocationExit built = cluster.wait_end(build);
  CHECK(built.kind() == v1::AllocationExit::KIND_SUCCEEDED);
  CHECK(built.message().size() == 64);
  CHECK(cluster.logged(build, "model_def.cpp taken from the build cache"));
  CHECK_FALSE(cluster.logged(build, "harness --model-dir"));

  cluster.master->context =
      need(pack_entries({{.path = "model_def.cpp", .content = "struct Net {};\n\nint x = y;\n"}}));
  const std::string bad = cluster.order("model_def:Net");
  const v1::AllocationExit exit = cluster.wait_end(bad);
  CHECK(exit.kind() == v1::AllocationExit::KIND_FAILED);
  CHECK(exit.message() ==
        "model_def.cpp does not compile\nmodel_def.cpp:3:9: error: 'y' was not declared in this scope");
  CHECK(cluster.logged(bad, "model_def.cpp:3:9: error:"));

  const std::string absent = cluster.order("other:Net");
  CHECK(cluster.wait_end(absent).message() == "entrypoint other:Net: the model directory has no other.cpp");
}
