#include <catch2/catch.hpp>

#include "cli/command.h"
#include "common/base/text.h"
#include "fake_master.h"
#include "test_paths.h"

namespace det::cli::test {
namespace {

/// Output of `det completion bash -- WORDS`, joined by spaces.
std::string offered(const FakeMaster& master, const std::vector<std::string>& words) {
  std::vector<std::string> arguments{"completion", "bash", "--"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  const auto done = master.det(arguments);
  INFO(done.err);
  CHECK(done.status.code == 0);
  CHECK(done.err.empty());
  return join(split(std::string(trim(done.out)), '\n'), " ");
}

v1::Experiment experiment(int id, const std::string& name) {
  v1::Experiment made;
  made.set_id(id);
  made.set_name(name);
  return made;
}

}  // namespace

TEST_CASE("commands, verbs and flags are completed, also after flags and their values") {
  FakeMaster master;
  CHECK(offered(master, {"expe"}) == "experiment");
  CHECK(offered(master, {"-m", master.url(), "experiment", "cr"}) == "create");
  CHECK(offered(master, {"-m", "host", ":", "1", "experiment", "cr"}) == "create");
  CHECK(offered(master, {"e", "create", "--fol"}) == "--follow-first-trial");
  CHECK(offered(master, {"e", "label", ""}) == "add remove help");
  CHECK(offered(master, {"e", "download-model-def", "--top"}) == "");
  CHECK(offered(master, {"completion", "z"}) == "zsh");
  CHECK(offered(master, {"e", "list", "--pages", ""}) == "1 all");
  CHECK(offered(master, {"--us"}) == "--user");
  CHECK(has(offered(master, {""}), "experiment"));
}

TEST_CASE("ids and names are completed from the master") {
  FakeMaster master;
  master.world.experiments[7] = experiment(7, "mnist");
  master.world.experiments[71] = experiment(71, "cifar");
  for (const int id : {7, 71}) {
    master.world.trials.emplace_back().set_id(id * 10);
    master.world.trials.back().set_experiment_id(id);
  }
  v1::Agent agent;
  agent.set_id("a1");
  (*agent.mutable_slots())["0"].set_id("0");
  master.world.agents.push_back(agent);
  master.world.templates["with space$(x)"] = "{}";
  CHECK(offered(master, {"e", "pause", ""}) == "71 7");
  CHECK(offered(master, {"e", "describe", "7", "71"}) == "71");
  CHECK(offered(master, {"e", "pause", "7", ""}) == "");
  CHECK(offered(master, {"trial", "logs", "-f", ""}) == "710 70");
  CHECK(offered(master, {"slot", "disable", ""}) == "a1");
  CHECK(offered(master, {"slot", "disable", "a1", ""}) == "0");
  CHECK(offered(master, {"e", "create", "--template", ""}) == "with\\ space\\$\\(x\\)");
  const auto zsh = master.det({"completion", "zsh", "--", "e", "pause", "71"});
  CHECK(zsh.out == "71:cifar, UNSPECIFIED\n");
  CHECK(master.det({"completion", "fish", "--", "e", "pause", "71"}).out == "71\tcifar, UNSPECIFIED\n");
}

TEST_CASE("ids of old experiments are completed from their first digits") {
  FakeMaster master;
  for (int id = 1; id <= 1250; ++id) master.world.experiments[id] = experiment(id, "mnist");
  CHECK(offered(master, {"e", "pause", "12"}).starts_with("12 129 128"));
  CHECK(offered(master, {"e", "pause", "124"}).ends_with("1241 1240"));
  CHECK(offered(master, {"e", "pause", "99"}) == "99 999 998 997 996 995 994 993 992 991 990");
  CHECK(offered(master, {"e", "pause", "1251"}) == "");
}

TEST_CASE("completion prints nothing without a master or without a login") {
  FakeMaster master;
  for (const auto& done : {master.det({"completion", "bash", "--", "-m", "127.0.0.1:1", "e", "pause", ""}),
                           master.det({"completion", "bash", "--", "e", "pause", ""}, "", "")}) {
    CHECK(done.status.code == 0);
    CHECK(done.out.empty());
    CHECK(done.err.empty());
  }
}

TEST_CASE("the bash script runs the typed program, and its output is not expanded by the shell") {
  FakeMaster master;
  master.world.templates["$(touch expanded)"] = "{}";
  const std::string script = master.det({"completion", "bash"}).out;
  const auto complete = [&](const std::string& words) {
    const std::string line = script + "\nCOMP_WORDS=(" + build_path("/bin/det ") + words +
                             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_det\necho \"${COMPREPLY[@]}\"";
    ProcessOptions options;
    options.argv = {"bash", "-c", line};
    options.env = environment_with({"DET_MASTER=" + master.url(), "DET_USER_TOKEN=token-of-admin"});
    const auto done = run_process(options);
    REQUIRE(done);
    INFO(done->err);
    CHECK(done->ok());
    return std::string(trim(done->out));
  };
  CHECK(complete("e cre") == "create");
  CHECK(complete("template describe ''") == "\\$\\(touch\\ expanded\\)");
  CHECK(has(master.det({"completion", "zsh"}).out, "compdef _det det"));
  CHECK(has(master.det({"completion", "fish"}).out, "complete -c det"));
}

}  // namespace det::cli::test
