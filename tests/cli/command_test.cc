// Usage errors, exit codes and logins of the real program.
#include "cli/command.h"

#include <catch2/catch.hpp>

#include "common/base/text.h"
#include "fake_master.h"
#include "test_paths.h"

namespace det::cli::test {

TEST_CASE("a usage error prints one line on stderr with the nearest word and exits with 2") {
  FakeMaster master;
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& part) {
    const auto done = master.det(arguments);
    INFO(join(arguments, " ") << ": " << done.err);
    CHECK(done.status.code == 2);
    CHECK(done.out.empty());
    CHECK(split(done.err, '\n').size() == 2);
    CHECK(has(done.err, part));
  };
  check({"experimnt", "list"}, "did you mean \"experiment\"?");
  check({"experiment", "lst"}, "did you mean");
  check({"experiment", "list", "--jsno"}, "--jsno");
  check({"experiment", "describe"}, "IDS");
  check({"experiment", "pause", "x"}, "ID");
  check({"experiment", "pause", "0"}, "ID");
  check({"experiment", "describe", "1,x"}, "\"x\" is not an experiment id");
  check({"experiment", "list", "--json", "--csv"}, "--json");
  check({"experiment", "create", "/no/such.yaml"}, "/no/such.yaml");
  check({"-m", "ftp://x", "experiment", "list"}, "ftp");
  check({"trial", "logs", "1", "--head", "1", "--tail", "1"}, "--tail");
  check({"trial", "logs", "1", "--level", "loud"}, "--level");
  check({"completion", "tcsh"}, "SHELL");
}

TEST_CASE("help is generated from the command table") {
  FakeMaster master;
  for (const Command& noun : commands()) {
    for (const std::string& name : noun.names) {
      const auto done = master.det({name, "--help"});
      CHECK(done.status.code == 0);
      CHECK(has(done.out, noun.summary));
      for (const Command& verb : noun.verbs) CHECK(has(done.out, verb.summary));
    }
    CHECK(has(master.det({"help"}).out, noun.summary));
    for (const Command& verb : noun.verbs) {
      CHECK(has(master.det({noun.names.front(), verb.names.back(), "--help"}).out, verb.summary));
    }
  }
  CHECK(has(master.det({"experiment", "help"}).out, "list-checkpoints"));
  CHECK(has(master.det({"--version"}).out, "det "));
  CHECK(master.det({}).status.code == 2);
}

TEST_CASE("an unreachable master exits with 3 and names its address and a remedy") {
  FakeMaster master;
  const auto done = master.det({"-m", "127.0.0.1:1", "experiment", "list"});
  CHECK(done.status.code == 3);
  CHECK(has(done.err, "cannot reach the master at http://127.0.0.1:1"));
  CHECK(has(done.err, "DET_MASTER"));
}

TEST_CASE("a command without a login exits with 3 and a remedy") {
  FakeMaster master;
  const auto none = master.det({"experiment", "list"}, "", "");
  CHECK(none.status.code == 3);
  CHECK(has(none.err, "run `det user login`"));
  const auto stale = master.det({"experiment", "list"}, "", "stale");
  CHECK(stale.status.code == 3);
  CHECK(has(stale.err, "run `det user login`"));
}

TEST_CASE("a refusal by the master exits with 1") {
  FakeMaster master;
  const auto done = master.det({"experiment", "pause", "5"});
  CHECK(done.status.code == 1);
  CHECK(done.err == "det: experiment not found\n");
}

TEST_CASE("output that cannot be written is an error") {
  FakeMaster master;
  for (const std::string command : {"--version", "user whoami", "completion bash"}) {
    const auto done = run_process(
        {.argv = {"sh", "-c", "exec \"$0\" " + command + " > /dev/full", build_path("/bin/det")},
         .env = environment_with({"DET_MASTER=" + master.url(), "XDG_CONFIG_HOME=" + master.config_home(),
                                  "DET_USER_TOKEN=token-of-admin"})});
    REQUIRE(done);
    CHECK(done->status.code == 1);
    CHECK(done->err.starts_with("det: cannot write the output: "));
  }
}

TEST_CASE("login stores the token, whoami uses it, logout removes it") {
  FakeMaster master;
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string file = home->path() + "/password";
  REQUIRE(write_file_atomic(file, "secret password\n"));
  const auto login = master.det({"user", "login", "admin", "--password-file", file}, "", "");
  INFO(login.err);
  CHECK(login.status.code == 0);
  CHECK(has(login.out, "Logged in as admin"));
  CHECK(master.det({"user", "whoami"}, "", "").out == "You are logged in as user 'admin'\n");
  CHECK(master.det({"-u", "admin", "user", "whoami"}, "", "").status.code == 0);
  CHECK(master.det({"-u", "eve", "user", "whoami"}, "", "").status.code == 3);
  CHECK(master.det({"user", "logout"}, "", "").status.code == 0);
  CHECK(master.det({"user", "whoami"}, "", "").status.code == 3);
  CHECK(master.det({"user", "logout"}, "", "").status.code == 0);
}

TEST_CASE("logout of a user without a login keeps the other logins") {
  FakeMaster master;
  REQUIRE(master.det({"user", "login", "admin"}, "", "", "secret password\n").status.code == 0);
  CHECK(master.det({"-u", "eve", "user", "logout"}, "", "").out == "No user was logged in\n");
  CHECK(master.det({"user", "whoami"}, "", "").status.code == 0);
  CHECK(master.det({"-u", "eve", "user", "logout", "--all"}, "", "").status.code == 0);
  CHECK(master.det({"user", "whoami"}, "", "").status.code == 3);
}

TEST_CASE("the flag -u has precedence over DET_USER_TOKEN") {
  FakeMaster master;
  const auto done = master.det({"-u", "eve", "user", "whoami"}, "", "token-of-admin");
  CHECK(done.status.code == 3);
  CHECK(has(done.err, "run `det user login eve`"));
}

TEST_CASE("master-down --delete-db deletes the data of the master and keeps that of the agents") {
  FakeMaster master;
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string cluster = home->path() + "/determinant/determined";
  REQUIRE(make_directories(cluster + "/master"));
  for (const char* file : {"master/data", "master.log", "agent-0.pid", "agent-0.log"})
    REQUIRE(write_file_atomic(cluster + "/" + file, "1\n"));
  REQUIRE(write_file_atomic(cluster + "/master.out", "ready " + master.url() + "\n"));
  TokenFile tokens(master.config_home() + "/det/auth.json");
  REQUIRE(tokens.save(master.url(), {"admin", "token-of-admin"}));
  const auto done = master.det({"deploy", "local", "master-down", "--delete-db"}, "", "", "",
                               {"XDG_DATA_HOME=" + home->path()});
  INFO(done.err);
  CHECK(done.status.code == 0);
  CHECK_FALSE(path_exists(cluster + "/master"));
  CHECK_FALSE(path_exists(cluster + "/master.log"));
  CHECK(path_exists(cluster + "/agent-0.pid"));
  CHECK(path_exists(cluster + "/agent-0.log"));
  CHECK_FALSE(tokens.find(master.url(), "").value().has_value());
}

TEST_CASE("cluster-up logs in again when the stored login has ended, and reports a failed login") {
  FakeMaster master;
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string cluster = home->path() + "/determinant/determined";
  REQUIRE(make_directories(cluster + "/master"));
  // A process with the arguments of a master, for which the one of the test answers.
  const auto running = Child::spawn(
      {.argv = {"sh", "-c", "read line", cluster + "/master"}, .in = Stream::pipe(), .dies_with_us = true});
  REQUIRE(running);
  REQUIRE(write_file_atomic(cluster + "/master.pid", std::to_string(running->pid()) + "\n"));
  REQUIRE(write_file_atomic(cluster + "/master.out", "ready " + master.url() + "\n"));
  TokenFile tokens(master.config_home() + "/det/auth.json");
  const auto up = [&](const std::string& password) {
    REQUIRE(tokens.save(master.url(), {"admin", "expired"}));
    REQUIRE(write_file_atomic(cluster + "/initial-password", password + "\n"));
    return master.det({"deploy", "local", "cluster-up", "--agents", "0"}, "", "", "",
                      {"XDG_DATA_HOME=" + home->path()});
  };
  const auto refused = up("changed");
  CHECK(refused.status.code == 3);
  CHECK(has(refused.err, "log in with `det -m " + master.url() + " user login`"));
  CHECK(up("secret password").status.code == 0);
  CHECK(tokens.find(master.url(), "").value()->token == "token-of-admin");
}

TEST_CASE("a directory that is too large for an interactive task is named before the call, with .detignore") {
  FakeMaster master;
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  REQUIRE(write_file_atomic(home->path() + "/data.bin", std::string(5 << 20, 'x')));
  for (const std::string kind : {"notebook", "shell", "tensorboard"}) {
    const auto done = master.det({kind, "start", "-c", home->path()});
    INFO(done.err);
    CHECK(done.status.code == 2);
    CHECK(has(done.err, "--context " + home->path()));
    CHECK(has(done.err, "the maximum is 4 MiB"));
    CHECK(has(done.err, ".detignore"));
  }
}

TEST_CASE("a wrong password exits with 3, and a password can be typed") {
  FakeMaster master;
  const auto wrong = master.det({"user", "login", "admin"}, "", "", "guess\n");
  CHECK(wrong.status.code == 3);
  CHECK(has(wrong.err, "wrong user name or password"));
  const auto right = master.det({"user", "login"}, "", "", "admin\nsecret password\n");
  CHECK(right.status.code == 0);
  const auto nothing = master.det({"user", "login", "admin"}, "", "");
  CHECK(nothing.status.code == 1);
}

TEST_CASE("version prints both versions, or the client's alone when the master is unreachable") {
  FakeMaster master;
  const auto both = master.det({"version"}, "", "");
  CHECK(both.status.code == 0);
  CHECK(has(both.out, "client:\n  version: "));
  CHECK(has(both.out, "9.9.9"));
  const auto one = master.det({"-m", "127.0.0.1:1", "version"}, "", "");
  CHECK(one.status.code == 3);
  CHECK(has(one.out, "client:\n"));
}

TEST_CASE("master info needs no login") {
  FakeMaster master;
  const auto done = master.det({"master", "info", "--json"}, "", "");
  CHECK(done.status.code == 0);
  CHECK(has(done.out, "\"clusterId\": \"cluster-1\""));
}

TEST_CASE("the configuration file sets master and user; flags and the environment override it") {
  FakeMaster master;
  const auto write = [&](const std::string& text) {
    REQUIRE(make_directories(master.config_home() + "/det"));
    REQUIRE(write_file_atomic(master.config_home() + "/det/det.yaml", text));
  };
  write("master: 127.0.0.1:1\n");
  CHECK(master.det({"version"}).status.code == 0);  // DET_MASTER overrides the file
  const auto by_file = master.det({"experiment", "list"}, "", "token-of-admin", "", {"DET_MASTER"});
  CHECK(by_file.status.code == 3);
  CHECK(has(by_file.err, "http://127.0.0.1:1"));
  CHECK(master.det({"-m", master.url(), "version"}, "", "", "", {"DET_MASTER"}).status.code == 0);
  write("user: eve\n");
  CHECK(has(master.det({"experiment", "list"}, "", "").err, "det user login eve"));
  CHECK(has(master.det({"-u", "ada", "experiment", "list"}, "", "").err, "det user login ada"));
  write("mastr: x\nuser: 3\n");
  const auto bad = master.det({"experiment", "list"});
  CHECK(bad.status.code == 2);
  CHECK(has(bad.err, "det.yaml:1:1"));
  CHECK(has(bad.err, "did you mean \"master\"?"));
  CHECK(has(bad.err, "det.yaml:2:1"));
}

TEST_CASE("dev curl passes its arguments to curl in order and never shows the token") {
  FakeMaster master;
  const auto done = master.det({"dev", "curl", "-x", "-X", "POST", "/api/v1/x?a=b c", "--max-time", "1"});
  CHECK(has(done.err, "curl -sS -K /proc/self/fd/"));
  CHECK(has(done.err, " -X POST '" + master.url() + "/api/v1/x?a=b c' --max-time 1\n"));
  CHECK(!has(done.err, "token-of-admin"));
  CHECK(master.det({"dev", "curl"}).status.code == 2);
}

TEST_CASE("a closed output pipe prints no error") {
  FakeMaster master;
  ProcessOptions options;
  options.argv = {"bash", "-c", "set -o pipefail; " + build_path("/bin/det") + " experiment --help | true"};
  const auto done = run_process(options);
  REQUIRE(done);
  CHECK(done->err.empty());
}

}  // namespace det::cli::test
