// Runs `det template`, `det config-policies` and `create --template`.
#include <catch2/catch.hpp>

#include "fake_master.h"

namespace det::cli::test {
namespace {

struct Files {
  Files() {
    write("const.yaml", "name: x\nsearcher: {metric: loss}\n");
    write("net.yaml", "entrypoint: run\nsearcher: {name: single}\n");
    write("wrong.yaml", "resources: {priority: 300}\nsearchr: {}\n");
    write("policies.yaml", "constraints: {priority_limit: 40}\n");
    write("task_policies.yaml", "invariant_config: {resources: {slots: 0}}\n");
    write("wrong_policies.yaml", "constraints: {priority_limit: 400}\n");
  }
  void write(const std::string& name, const std::string& text) const {
    REQUIRE(write_file_atomic(home.path() + "/" + name, text));
  }
  TemporaryDirectory home = TemporaryDirectory::create().value();
};

}  // namespace

TEST_CASE("a template is set, listed, shown, used and removed") {
  FakeMaster master;
  const Files files;
  const auto det = [&](std::vector<std::string> arguments) {
    const auto done = master.det(std::move(arguments), files.home.path());
    INFO(done.err);
    CHECK(done.status.code == 0);
    return done.out;
  };
  CHECK(det({"template", "set", "net", "net.yaml"}) == "Set template net\n");
  CHECK(master.world.templates.at("net") == "entrypoint: run\nsearcher: {name: single}\n");
  CHECK(det({"tpl", "ls"}).find("net") != std::string::npos);
  CHECK(det({"template", "describe", "net"}) == "entrypoint: run\nsearcher: {name: single}\n");
  det({"experiment", "create", "const.yaml", "--template", "net"});
  REQUIRE(master.world.created.size() == 1);
  CHECK(master.world.created.front().template_() == "net");
  CHECK(master.world.created.front().config() == "name: x\nsearcher: {metric: loss}\n");
  CHECK(det({"template", "rm", "net"}) == "Removed template net\n");
  CHECK(master.world.templates.empty());
}

TEST_CASE("an invalid template is refused locally, and a missing one is named") {
  FakeMaster master;
  const Files files;
  // Without a login, no request could have succeeded.
  const auto wrong = master.det({"template", "set", "net", "wrong.yaml"}, files.home.path(), "");
  CHECK(wrong.status.code == 2);
  CHECK(wrong.err.find("wrong.yaml:1:23") != std::string::npos);
  CHECK(wrong.err.find("did you mean \"searcher\"?") != std::string::npos);
  const auto missing = master.det({"e", "create", "const.yaml", "--template", "nett"}, files.home.path());
  CHECK(missing.status.code == 2);
  CHECK(missing.err.find("E-CFG-REF") != std::string::npos);
  CHECK(missing.err.find("\"nett\"") != std::string::npos);
  CHECK(master.world.created.empty());
}

TEST_CASE("a template that conflicts with the configuration is refused before creation") {
  FakeMaster master;
  const Files files;
  master.world.templates["net"] = "entrypoint: run\nsearcher: {name: random}\n";
  const auto done = master.det({"e", "create", "const.yaml", "--template", "net"}, files.home.path());
  CHECK(done.status.code == 2);
  CHECK(done.err.find("searcher.max_trials") != std::string::npos);
  CHECK(master.world.created.empty());
}

TEST_CASE("an entrypoint absent from the model directory is refused before a request is sent") {
  FakeMaster master;
  const Files files;
  files.write("run.yaml", "entrypoint: ./train.sh\nsearcher: {name: single, metric: loss}\n");
  const auto done = master.det({"e", "create", "run.yaml", "."}, files.home.path(), "");
  CHECK(done.status.code == 2);
  CHECK(done.err.find("E-CTX-ENTRYPOINT") != std::string::npos);
  files.write("train.sh", "true\n");
  CHECK(master.det({"e", "create", "run.yaml", "."}, files.home.path()).status.code == 0);
}

TEST_CASE("config policies are set, shown and deleted") {
  FakeMaster master;
  const Files files;
  const auto det = [&](std::vector<std::string> arguments) {
    return master.det(std::move(arguments), files.home.path());
  };
  CHECK(det({"config-policies", "describe", "experiment"}).out == "No config policies are set.\n");
  const auto wrong = det({"config-policies", "set", "experiment", "wrong_policies.yaml"});
  CHECK(wrong.status.code == 2);
  CHECK(wrong.err.find("wrong_policies.yaml:1:31") != std::string::npos);
  CHECK(master.world.policies.empty());
  CHECK(det({"cp", "set", "experiment", "policies.yaml"}).status.code == 0);
  CHECK(det({"cp", "describe", "experiment"}).out == "constraints: {priority_limit: 40}\n");
  // Policies of commands have no searcher, and those of experiments no slots of their own.
  CHECK(det({"cp", "set", "tasks", "task_policies.yaml"}).out == "Set the config policies for new tasks\n");
  CHECK(det({"cp", "set", "experiment", "task_policies.yaml"}).status.code == 2);
  CHECK(det({"cp", "set", "notebooks", "policies.yaml"}).status.code == 2);
  CHECK(det({"cp", "delete", "experiment"}).status.code == 0);
  CHECK(master.world.policies.empty());
}

}  // namespace det::cli::test
