// Slots of GPUs: link groups, MIG devices, shared GPUs. NVML is a stand-in that plays a script.
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "agent/detect.h"
#include "common/base/files.h"
#include "need.h"
#include "test_paths.h"

using namespace det;
using namespace det::agent;

namespace {

/// Machine with scripted GPUs.
struct Machine {
  /// `gpus`: as in the file of the stand-in.
  explicit Machine(const std::string& gpus) {
    script("gpus", gpus);
    ::setenv("DET_SCRIPTED_NVML", dir.path().c_str(), 1);
    REQUIRE(::mkfifo((dir.path() + "/events").c_str(), 0600) == 0);
    // Once loaded, it is found under its name, too.
    REQUIRE(nvml());
  }
  ~Machine() { ::unsetenv("DET_SCRIPTED_NVML"); }
  void script(const std::string& file, const std::string& text) {
    need(write_file_atomic(dir.path() + "/" + file, text));
  }
  static std::unique_ptr<Nvml> nvml() {
    return Nvml::load(build_path("/tests/scripted_nvml/libnvidia-ml.so.1").c_str());
  }
  TemporaryDirectory dir = need(TemporaryDirectory::create());
};

std::vector<int> groups_of(const std::vector<Device>& devices) {
  std::vector<int> groups;
  for (const Device& device : devices) groups.push_back(device.link);
  return groups;
}

/// Links both GPUs of each pair. The addresses are the indexes.
std::vector<NvLinks> linked(std::size_t count, const std::vector<std::pair<int, int>>& pairs) {
  std::vector<NvLinks> gpus(count);
  for (std::size_t i = 0; i < count; ++i) gpus[i].address = std::to_string(i);
  for (const auto& [a, b] : pairs) {
    gpus[static_cast<std::size_t>(a)].peers.push_back(std::to_string(b));
    gpus[static_cast<std::size_t>(b)].peers.push_back(std::to_string(a));
  }
  return gpus;
}

}  // namespace

TEST_CASE("GPUs without NVLink are in one link group", "[detect]") {
  CHECK(link_groups({}).empty());
  CHECK(link_groups(linked(3, {})) == std::vector<int>{0, 0, 0});
}

TEST_CASE("GPUs that NVLink connects to each other are a link group", "[detect]") {
  CHECK(link_groups(linked(4, {{0, 2}, {1, 3}})) == std::vector<int>{0, 1, 0, 1});
  // A GPU without NVLink beside a pair is alone.
  CHECK(link_groups(linked(4, {{1, 2}})) == std::vector<int>{1, 0, 0, 2});
  // A chain is no group of three: its ends are not connected.
  CHECK(link_groups(linked(3, {{0, 1}, {1, 2}})) == std::vector<int>{0, 0, 1});
  // The hybrid cube mesh of eight V100: two squares with diagonals, and one link from each corner to the
  // other square.
  CHECK(link_groups(linked(8, {{0, 1},
                               {0, 2},
                               {0, 3},
                               {1, 2},
                               {1, 3},
                               {2, 3},
                               {4, 5},
                               {4, 6},
                               {4, 7},
                               {5, 6},
                               {5, 7},
                               {6, 7},
                               {0, 4},
                               {1, 5},
                               {2, 6},
                               {3, 7}})) == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
  // A link that only one side reports is broken.
  std::vector<NvLinks> broken = linked(2, {});
  broken[0].peers.push_back("1");
  CHECK(link_groups(broken) == std::vector<int>{0, 0});
}

TEST_CASE("an NVSwitch connects all GPUs that have an active link to it", "[detect]") {
  std::vector<NvLinks> gpus = linked(16, {});
  for (NvLinks& gpu : gpus) gpu.nvswitch = true;
  CHECK(link_groups(gpus) == std::vector<int>(16, 0));
  gpus[2].nvswitch = false;
  CHECK(link_groups(gpus)[1] == 0);
  CHECK(link_groups(gpus)[2] == 1);
}

TEST_CASE("the agent reports the NVLink connections of the driver as link groups", "[detect]") {
  Machine machine("GPU-a\nGPU-b\nGPU-c\nGPU-d\n");
  CHECK(groups_of(detect_cuda()) == std::vector<int>{0, 0, 0, 0});
  machine.script("0", "link0 3\nlink4 3\n");
  machine.script("1", "link2 2\n");
  machine.script("2", "link1 1\n");
  machine.script("3", "link7 0\n");
  CHECK(groups_of(detect_cuda()) == std::vector<int>{0, 1, 1, 0});
  // Without the type of the other end, its address decides.
  machine.script("1", "link2 2\nno_link_types 1\n");
  CHECK(groups_of(detect_cuda()) == std::vector<int>{0, 1, 1, 0});
  machine.script("2", "link1 1\nlink1_inactive 1\n");
  CHECK(groups_of(detect_cuda()) == std::vector<int>{0, 1, 2, 0});
  for (const char* gpu : {"0", "1", "2", "3"}) machine.script(gpu, "link0 100\nlink17 100\n");
  machine.script("3", "");
  CHECK(groups_of(detect_cuda()) == std::vector<int>{0, 0, 0, 1});
  // The groups are those of the machine, whichever of its GPUs are visible.
  const std::vector<Device> visible = need(visible_devices(detect_cuda(), "3,0"));
  CHECK(groups_of(visible) == std::vector<int>{1, 0});
}

TEST_CASE("the MIG devices of a GPU in MIG mode are slots in its place, in a link group of their own",
          "[detect]") {
  Machine machine("GPU-a\nGPU-b mig MIG-1 MIG-2\nGPU-c mig\nGPU-d\n");
  machine.script("0", "link0 3\n");
  machine.script("1", "link0 100\n");
  machine.script("3", "link0 0\n");
  const std::vector<Device> devices = detect_cuda();
  REQUIRE(devices.size() == 4);
  CHECK(devices[1] == Device{"CUDA", "Scripted 100 MIG 1g.10gb", "MIG-1", 1, 1, "GPU-b"});
  CHECK(devices[2].uuid == "MIG-2");
  CHECK(devices[3].uuid == "GPU-d");
  CHECK(groups_of(devices) == std::vector<int>{0, 1, 1, 0});
}

TEST_CASE("CUDA_VISIBLE_DEVICES of the agent names MIG devices, or all of a GPU", "[detect]") {
  Machine machine("GPU-a\nGPU-b mig MIG-1 MIG-2\nGPU-c mig\n");
  const std::vector<Device> all = detect_cuda();
  const auto names = [&](const std::string& list) {
    std::string joined;
    for (const Device& device : need(visible_devices(all, list))) joined += device.uuid + " ";
    return joined;
  };
  CHECK(names("MIG-2,GPU-a") == "MIG-2 GPU-a ");
  CHECK(names("1") == "MIG-1 MIG-2 ");
  CHECK(names("GPU-b,0") == "MIG-1 MIG-2 GPU-a ");
  for (const char* bad : {"MIG-", "MIG-3", "2", "GPU-c", "GPU-", "MIG-1,1"}) {
    CAPTURE(bad);
    CHECK(visible_devices(all, bad).error().code == Code::kFailedPrecondition);
  }
}

TEST_CASE("a process sees the MIG devices of its CUDA_VISIBLE_DEVICES", "[gpu]") {
  const std::vector<GpuName> gpus{{0, "", "GPU-a"}, {1, "", "MIG-1", "GPU-b"}, {1, "", "MIG-2", "GPU-b"}};
  CHECK(visible_gpus(gpus, "MIG-2") == std::vector<std::string>{"MIG-2"});
  CHECK(visible_gpus(gpus, "1,0") == std::vector<std::string>{"MIG-1", "GPU-a"});
  CHECK(visible_gpus(gpus, "MIG-2,2,0") == std::vector<std::string>{"MIG-2"});
  CHECK(visible_gpus(gpus, nullptr) == std::vector<std::string>{"GPU-a", "MIG-1"});
}

TEST_CASE("values that the driver lacks for a MIG device are those of its GPU", "[gpu]") {
  Machine machine("GPU-a mig MIG-1 MIG-2\n");
  machine.script("0", "memory_total 80\nmemory_used 70\ntemperature 61\necc 3\n");
  machine.script("0.1", "memory_total 10\nmemory_used 4\n");
  const auto nvml = Machine::nvml();
  nvml->select({"MIG-1", "MIG-2", "MIG-9"});
  std::vector<GpuReading> readings = nvml->read();
  REQUIRE(readings.size() == 3);
  CHECK(readings[0].memory_total == 80);
  CHECK(readings[1].memory_total == 10);
  CHECK(readings[1].memory_used == 4);
  CHECK(readings[1].temperature == 61);
  CHECK(readings[1].ecc_errors == 3);
  CHECK_FALSE(readings[1].utilization);
  CHECK_FALSE(readings[1].lost);
  CHECK(readings[2].lost);
  machine.script("0", "lost 1\n");
  CHECK(nvml->read()[1].lost);
}

TEST_CASE("an error of a GPU concerns its MIG devices, that of a GPU instance only those in it", "[gpu]") {
  Machine machine("GPU-a\nGPU-b mig MIG-1 MIG-2\n");
  const auto nvml = Machine::nvml();
  nvml->select({"MIG-2", "GPU-a", "MIG-1", "GPU-a"});
  REQUIRE(nvml->watch());
  std::ofstream events(machine.dir.path() + "/events");
  const auto places_of = [&](const std::string& event) {
    events << event << std::endl;
    const auto found = nvml->wait(std::chrono::seconds(10));
    return found ? found->gpus : std::vector<std::size_t>();
  };
  CHECK(places_of("1 8 79") == std::vector<std::size_t>{0, 2});
  CHECK(places_of("1 8 48 1") == std::vector<std::size_t>{2});
  CHECK(places_of("1 8 48 2") == std::vector<std::size_t>{0});
  // An instance without a selected device.
  CHECK(places_of("1 8 48 3").empty());
  CHECK(places_of("0 8 79") == std::vector<std::size_t>{1, 3});
}

TEST_CASE("slots that share GPUs are one of each GPU, then the next ones, in link groups of different GPUs",
          "[detect]") {
  const std::vector<Device> gpus{
      {"CUDA", "b", "GPU-a", 0, 0}, {"CUDA", "b", "GPU-b", 1, 1}, {"CUDA", "b", "GPU-c", 2, 0}};
  const std::vector<Device> slots = need(divided(gpus, 2));
  std::string uuids;
  for (const Device& slot : slots) uuids += slot.uuid + " ";
  CHECK(uuids == "GPU-a GPU-b GPU-c GPU-a GPU-b GPU-c ");
  CHECK(groups_of(slots) == std::vector<int>{0, 1, 0, 2, 3, 2});
}

TEST_CASE("MIG devices are not divided", "[detect]") {
  Machine machine("GPU-a\nGPU-b mig MIG-1\n");
  Settings settings;
  settings.slots_per_device = 2;
  CHECK(detect_devices(settings).error().message ==
        "slots_per_device: 2 does not divide MIG devices, and GPU GPU-b is in MIG mode; set "
        "slots_per_device: 1, or "
        "turn MIG mode off");
  // Only those that the agent offers count.
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  CHECK(need(detect_devices(settings)).size() == 2);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("a task cannot use MIG devices together, nor one GPU twice", "[detect]") {
  const Device a{"CUDA", "b", "GPU-a", 0}, b{"CUDA", "b", "GPU-b", 1},
      mig{"CUDA", "b", "MIG-1", 2, 0, "GPU-c"};
  const Device cpu{"CPU", "b", "cpu-0"};
  CHECK(conflict_of({}, true).empty());
  CHECK(conflict_of({a, b}, true).empty());
  CHECK(conflict_of({cpu, cpu}, false).empty());
  CHECK(conflict_of({mig}, false).empty());
  CHECK_THAT(conflict_of({mig}, true), Catch::StartsWith("are MIG devices"));
  CHECK_THAT(conflict_of({a, mig}, false), Catch::StartsWith("are MIG devices"));
  CHECK_THAT(conflict_of({a, b, a}, false),
             Catch::StartsWith("share GPU GPU-a, and NCCL needs one for each process"));
}
