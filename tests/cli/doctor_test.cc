#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "fake_master.h"

namespace det::cli::test {
namespace {

v1::Agent agent(const std::string& id, v1::Device::Type type) {
  v1::Agent made;
  made.set_id(id);
  made.set_release("9.9.9");
  made.set_connected(true);
  made.set_enabled(true);
  v1::Slot& slot = (*made.mutable_slots())["0"];
  slot.set_enabled(true);
  slot.mutable_device()->set_type(type);
  return made;
}

void make_well(World& world) {
  world.agents = {agent("a1", v1::Device::TYPE_CUDA)};
  world.diagnosis.mutable_now()->set_seconds(wall_now().micros / 1'000'000);
  world.diagnosis.mutable_database()->set_version("15.5");
  world.diagnosis.mutable_storage()->set_type("shared_fs");
  world.diagnosis.mutable_storage()->set_path("/x");
  world.diagnosis.mutable_storage()->set_free_bytes(100LL << 30);
}

/// Runs `det doctor --json` and returns the level of each check.
std::map<std::string, std::string> findings(const FakeMaster& master, int code,
                                            const std::string& token = "token-of-admin") {
  const auto done = master.det({"doctor", "--json"}, "", token);
  INFO(done.out << done.err);
  CHECK(done.status.code == code);
  const auto json = parse_json(done.out);
  REQUIRE(json);
  std::map<std::string, std::string> levels;
  for (const Json& each : *json) {
    levels[each["what"].get<std::string>()] = each["level"].get<std::string>();
    CHECK((each["level"] == "ok") == each["mend"].get<std::string>().empty());
  }
  return levels;
}

}  // namespace

TEST_CASE("every check of a healthy cluster is ok") {
  FakeMaster master;
  make_well(master.world);
  const auto levels = findings(master, 0);
  CHECK(levels == std::map<std::string, std::string>{{"configuration", "ok"},
                                                     {"master", "ok"},
                                                     {"versions", "warn"},  // the fake is 9.9.9
                                                     {"login", "ok"},
                                                     {"database", "ok"},
                                                     {"storage", "ok"},
                                                     {"clock", "ok"},
                                                     {"agents", "ok"},
                                                     {"slots", "ok"}});
  const auto text = master.det({"doctor"});
  CHECK(text.out.find("ok    agents: 1 agent connected\n") != std::string::npos);
}

TEST_CASE("each fault is found, with a remedy") {
  FakeMaster master;
  const auto check = [&](int code, const std::string& what, const std::string& level, const auto& spoil) {
    make_well(master.world);
    spoil(master.world);
    INFO(what);
    CHECK(findings(master, code)[what] == level);
  };
  check(1, "storage", "fail",
        [](World& world) { world.diagnosis.mutable_storage()->set_problem("read-only"); });
  check(0, "storage", "warn", [](World& world) {
    world.diagnosis.mutable_storage()->set_problem(""), world.diagnosis.mutable_storage()->set_free_bytes(1);
  });
  // A bucket does not report its free space.
  check(0, "storage", "ok", [](World& world) {
    world.diagnosis.mutable_storage()->set_path("s3://bucket"),
        world.diagnosis.mutable_storage()->set_free_bytes(0);
  });
  check(1, "clock", "fail", [](World& world) { world.diagnosis.mutable_now()->set_seconds(1'000'000); });
  check(0, "database", "warn",
        [](World& world) { world.diagnosis.mutable_database()->set_milliseconds(500); });
  check(0, "slots", "warn", [](World& world) {
    world.diagnosis.mutable_database()->set_milliseconds(1);
    world.agents = {agent("a1", v1::Device::TYPE_CPU)};
  });
  check(1, "agents", "fail", [](World& world) { world.agents.clear(); });
  check(1, "agent a2", "fail", [](World& world) {
    world.agents.push_back(agent("a2", v1::Device::TYPE_CUDA));
    world.agents.back().set_connected(false);
  });
  check(0, "agent a2", "warn", [](World& world) {
    world.agents.push_back(agent("a2", v1::Device::TYPE_CUDA));
    world.agents.back().set_release("1");
  });
}

TEST_CASE("checks that need a login or a master are skipped without one") {
  FakeMaster master;
  CHECK(findings(master, 1, "")["login"] == "fail");
  CHECK(findings(master, 1, "stale")["login"] == "fail");
  const auto away = master.det({"-m", "127.0.0.1:1", "doctor"});
  CHECK(away.status.code == 1);
  CHECK(away.out.find("fail  master: cannot reach") != std::string::npos);
  CHECK(away.out.find("database") == std::string::npos);
}

}  // namespace det::cli::test
