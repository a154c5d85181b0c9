// Owns usage, exit codes, logging in and completion on the real program.
#include "cli/command.h"

#include <catch2/catch.hpp>

#include "base/text.h"
#include "fake_master.h"

namespace det::cli::test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("wrong usage is one line on stderr and code 2, with the nearest word") {
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
  check({"experiment", "describe", "1,x"}, "\"x\" is no experiment's id");
  check({"experiment", "list", "--json", "--csv"}, "--json");
  check({"experiment", "create", "/no/such.yaml"}, "/no/such.yaml");
  check({"-m", "ftp://x", "experiment", "list"}, "ftp");
  check({"trial", "logs", "1", "--head", "1", "--tail", "1"}, "--tail");
  check({"trial", "logs", "1", "--level", "loud"}, "--level");
  check({"completion", "tcsh"}, "SHELL");
}

TEST_CASE("help is data of the table") {
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

TEST_CASE("a master that is not there is code 3 and names the address and the mend") {
  FakeMaster master;
  const auto done = master.det({"-m", "127.0.0.1:1", "experiment", "list"});
  CHECK(done.status.code == 3);
  CHECK(has(done.err, "cannot reach the master at http://127.0.0.1:1"));
  CHECK(has(done.err, "DET_MASTER"));
}

TEST_CASE("who has not logged in gets code 3 and the mend") {
  FakeMaster master;
  const auto none = master.det({"experiment", "list"}, "", "");
  CHECK(none.status.code == 3);
  CHECK(has(none.err, "run `det user login`"));
  const auto stale = master.det({"experiment", "list"}, "", "stale");
  CHECK(stale.status.code == 3);
  CHECK(has(stale.err, "run `det user login`"));
}

TEST_CASE("what the master says no to is code 1") {
  FakeMaster master;
  const auto done = master.det({"experiment", "pause", "5"});
  CHECK(done.status.code == 1);
  CHECK(done.err == "det: experiment not found\n");
}

TEST_CASE("login keeps the token, whoami uses it, logout forgets it") {
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

TEST_CASE("a wrong password is code 3; a password may be typed") {
  FakeMaster master;
  const auto wrong = master.det({"user", "login", "admin"}, "", "", "guess\n");
  CHECK(wrong.status.code == 3);
  CHECK(has(wrong.err, "wrong user name or password"));
  const auto right = master.det({"user", "login"}, "", "", "admin\nsecret password\n");
  CHECK(right.status.code == 0);
  const auto nothing = master.det({"user", "login", "admin"}, "", "");
  CHECK(nothing.status.code == 1);
}

TEST_CASE("version tells both, and says so when there is only one") {
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

TEST_CASE("the bash script completes nouns, verbs and flags, past global flags") {
  FakeMaster master;
  const std::string script = master.det({"completion", "bash"}).out;
  const auto complete = [&](const std::string& words) {
    const std::string line = script + "\nCOMP_WORDS=(" + words +
                             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_det\n" + "echo \"${COMPREPLY[@]}\"";
    ProcessOptions options;
    options.argv = {"bash", "-c", line};
    const auto done = run_process(options);
    REQUIRE(done);
    INFO(done->err);
    CHECK(done->ok());
    return std::string(trim(done->out));
  };
  CHECK(complete("det expe") == "experiment");
  CHECK(complete("det -m host:1 experiment cr") == "create");
  CHECK(complete("det e create --fol") == "--follow-first-trial");
  CHECK(complete("det experiment download-model-def --out") == "--output-dir");
  CHECK(complete("det e download-model-def --top") == "");
  CHECK(complete("det completion z") == "zsh");
  CHECK(has(master.det({"completion", "fish"}).out, "-l follow-first-trial"));
  CHECK(has(master.det({"completion", "zsh"}).out, "bashcompinit"));
}

TEST_CASE("the reader of a pipe may go: no message") {
  FakeMaster master;
  ProcessOptions options;
  options.argv = {"bash", "-c",
                  std::string("set -o pipefail; ") + DET_BUILD_DIR + "/bin/det experiment --help | true"};
  const auto done = run_process(options);
  REQUIRE(done);
  CHECK(done->err.empty());
}

}  // namespace det::cli::test
