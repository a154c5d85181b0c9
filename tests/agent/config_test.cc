#include "agent/config.h"

#include "agent/detect.h"
#include "common/base/files.h"
#include "need.h"
#include "test_paths.h"

using namespace det;
using namespace det::agent;

namespace {
Result<Settings> settings(const std::vector<std::string>& arguments) {
  TRY_ASSIGN(const Options options, Options::load(option_table(), arguments, {}));
  return read_settings(options);
}
}  // namespace

TEST_CASE("the sample file documents every key with its default", "[config]") {
  CHECK(need(read_file(source_path("/deploy/agent.yaml"))) == sample_config(option_table()));
}

TEST_CASE("flags become settings", "[config]") {
  const Settings read =
      need(settings({"--master", "http://10.0.0.1:9000/", "--data-dir", "/d", "--id", "a1", "--pool", "gpu",
                     "--artificial-slots", "4", "--log-level", "debug", "--log-json"}));
  CHECK(read.master == "10.0.0.1:9000");
  CHECK(read.data_dir == "/d");
  CHECK(read.id == "a1");
  CHECK(read.pool == "gpu");
  CHECK(read.artificial_slots == 4);
  CHECK(read.log.json);
  CHECK(read.log.level == LogLevel::kDebug);
}

TEST_CASE("a TLS master address keeps its https scheme", "[config]") {
  const Settings read =
      need(settings({"--master", "https://det.example.org:8443/", "--join-token-file", "/t"}));
  CHECK(read.master == "https://det.example.org:8443");
  CHECK(read.join_token_file == "/t");
  CHECK_FALSE(settings({"--master", "https://det.example.org"}));
  CHECK_FALSE(settings({"--master", "ftp://det.example.org:1"}));
}

TEST_CASE("the agent id has a default", "[config]") { CHECK_FALSE(need(settings({})).id.empty()); }

TEST_CASE("all invalid settings are reported at once", "[config]") {
  const auto bad = settings({"--master", "nowhere", "--slot-type", "gpu", "--cpu-slots", "0"});
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().problems.size() == 3);
  CHECK_THAT(bad.error().message, Catch::Contains("HOST:PORT"));
  CHECK_THAT(bad.error().message, Catch::Contains("cpu_slots"));
}

TEST_CASE("detected slots match the configured type and count", "[detect]") {
  Settings wanted;
  wanted.artificial_slots = 3;
  const auto artificial = need(detect_devices(wanted));
  REQUIRE(artificial.size() == 3);
  CHECK(artificial[2].type == "ARTIFICIAL");
  CHECK(artificial[2].uuid == "artificial-2");
  wanted.artificial_slots = 0;
  wanted.slot_type = SlotType::kCpu;
  CHECK(need(detect_devices(wanted)).size() == 1);
  wanted.cpu_slots = 2;
  CHECK(need(detect_devices(wanted)).at(1).type == "CPU");
  wanted.slot_type = SlotType::kNone;
  CHECK(need(detect_devices(wanted)).empty());
  wanted.slot_type = SlotType::kCuda;
  if (detect_cuda().empty()) {
    CHECK(detect_devices(wanted).error().code == Code::kFailedPrecondition);
  } else {
    CHECK(need(detect_devices(wanted)).at(0).type == "CUDA");
  }
}
