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

TEST_CASE("the end of the machine is a time or a duration", "[config]") {
  CHECK_FALSE(need(settings({})).until);
  CHECK(need(settings({"--until", "1700000000"})).until == WallTime{1'700'000'000'000'000});
  CHECK(need(settings({"--until", "2030-01-31T12:00:00Z"})).until ==
        need(parse_rfc3339("2030-01-31T12:00:00Z")));
  const WallTime before = wall_now();
  const std::int64_t micros = need(settings({"--until", "2h"})).until->micros - before.micros;
  CHECK(micros >= 7'200'000'000);
  CHECK(micros < 7'260'000'000);
  for (const char* bad : {"120", "tomorrow", "0s", "-5m"}) {
    CAPTURE(bad);
    const auto refused = settings({"--until=" + std::string(bad)});
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message, Catch::Contains("until"));
  }
}

TEST_CASE("the idle time is a duration above zero", "[config]") {
  CHECK_FALSE(need(settings({})).exit_when_idle);
  CHECK(need(settings({"--exit-when-idle", "90s"})).exit_when_idle == std::chrono::seconds(90));
  CHECK_FALSE(settings({"--exit-when-idle", "0s"}));
  CHECK_FALSE(settings({"--exit-when-idle", "soon"}));
}

TEST_CASE("of the CUDA devices only those of CUDA_VISIBLE_DEVICES are offered", "[detect]") {
  // Device 1 of the driver does not respond.
  const std::vector<Device> all{
      {"CUDA", "b", "GPU-aa", 0}, {"CUDA", "b", "GPU-ab", 2}, {"CUDA", "b", "GPU-b", 3}};
  const auto names = [&](const std::string& list) {
    std::string joined;
    for (const Device& device : need(visible_devices(all, list))) joined += device.uuid + " ";
    return joined;
  };
  CHECK(names("0,2,3") == "GPU-aa GPU-ab GPU-b ");
  CHECK(names("2") == "GPU-ab ");
  CHECK(names("3, 0") == "GPU-b GPU-aa ");
  CHECK(names("GPU-b") == "GPU-b ");
  CHECK(names("").empty());
  CHECK(names("-1").empty());
  CHECK(names("NoDevFiles").empty());
  for (const char* bad : {"1", "4", "0,0", "GPU-a", "MIG-1", "0,,2", "x"}) {
    CAPTURE(bad);
    CHECK(visible_devices(all, bad).error().code == Code::kFailedPrecondition);
  }
}

TEST_CASE("slots_per_device divides GPUs only", "[config]") {
  CHECK(need(settings({})).slots_per_device == 1);
  CHECK(need(settings({"--slots-per-device", "4"})).slots_per_device == 4);
  CHECK(need(settings({"--slots-per-device", "1", "--slot-type", "cpu"})).slots_per_device == 1);
  const std::vector<std::vector<std::string>> bad{{"--slots-per-device", "0"},
                                                  {"--slots-per-device", "49"},
                                                  {"--slots-per-device", "2", "--slot-type", "cpu"},
                                                  {"--slots-per-device", "2", "--slot-type", "none"},
                                                  {"--slots-per-device", "2", "--artificial-slots", "2"}};
  for (const auto& arguments : bad) {
    const auto refused = settings(arguments);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().problems.size() == 1);
    CHECK_THAT(refused.error().message, Catch::Contains("slots_per_device"));
  }
  // Without a GPU there is nothing to divide.
  Settings wanted;
  wanted.slots_per_device = 2;
  if (detect_cuda().empty()) {
    CHECK_THAT(detect_devices(wanted).error().message,
               Catch::Contains("slots_per_device: 2 needs a CUDA device"));
  }
}

TEST_CASE("settings of the sandbox are read", "[config]") {
  const Settings defaults = need(settings({}));
  CHECK(defaults.sandbox == SandboxMode::kBestEffort);
  CHECK(defaults.task_network == TaskNetwork::kHost);
  CHECK(defaults.bind_mounts.empty());
  const Settings read = need(
      settings({"--sandbox", "required", "--bind-mounts", "/usr, /tmp:rw,/etc:ro", "--task-uids", "5000:10",
                "--pass-environment", "A, B", "--task-network", "cluster", "--memory-per-slot", "2 GiB",
                "--cpus-per-slot", "1.5", "--container-engine", "unix:///run/podman.sock",
                "--image-registries", "docker.io/library/, r.example.org:5000"}));
  CHECK(read.container_engine == "/run/podman.sock");
  CHECK(read.image_registries == std::vector<std::string>{"docker.io/library", "r.example.org:5000"});
  CHECK(read.memory_per_slot == 2LL << 30);
  CHECK(read.cpu_millis_per_slot == 1500);
  CHECK(read.task_network == TaskNetwork::kCluster);
  CHECK(read.sandbox == SandboxMode::kRequired);
  REQUIRE(read.bind_mounts.size() == 3);
  CHECK_FALSE(read.bind_mounts[0].writable);
  CHECK(read.bind_mounts[1].path == "/tmp");
  CHECK(read.bind_mounts[1].writable);
  CHECK(read.bind_mounts[2].path == "/etc");
  CHECK(read.task_uid_first == 5000);
  CHECK(read.task_uid_count == 10);
  CHECK(read.pass_environment == std::vector<std::string>{"A", "B"});
}

TEST_CASE("an unsafe setting of the sandbox is refused with its key", "[config]") {
  const std::vector<std::pair<std::string, std::string>> bad{{"sandbox", "maybe"},
                                                             {"bind-mounts", "data"},
                                                             {"bind-mounts", "/"},
                                                             {"bind-mounts", "/no/such/dir"},
                                                             {"task-uids", "0:10"},
                                                             {"task-uids", "5000"},
                                                             {"task-network", "none"},
                                                             {"cpus-per-slot", "many"},
                                                             {"cpus-per-slot", "-1"},
                                                             {"memory-per-slot", "1 MiB"},
                                                             {"task-uids", "5000:0"},
                                                             {"task-uids", "4294967000:1000"},
                                                             {"container-engine", "podman"},
                                                             {"container-engine", "tcp://h:1"},
                                                             {"image-registries", "https://docker.io"},
                                                             {"image-registries", "/"}};
  for (const auto& [key, value] : bad) {
    INFO(key << " " << value);
    const auto refused = settings({"--" + key, value});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().problems.size() == 1);
  }
}

TEST_CASE("a network of tasks without a sandbox is refused", "[config]") {
  const auto refused = settings({"--sandbox", "off", "--task-network", "cluster"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().problems.at(0).message, Catch::Contains("cluster needs a sandbox"));
  CHECK_FALSE(settings({"--sandbox", "off", "--cpus-per-slot", "1"}));
  CHECK_FALSE(settings({"--sandbox", "off", "--container-engine", "/run/podman.sock"}));
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
