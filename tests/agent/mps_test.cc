// The MPS control daemon of an agent. Its program is a stand-in.
#include "agent/gpu/mps.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "need.h"
#include "test_paths.h"

using namespace det;
using namespace det::agent;

namespace {

/// A machine with the stand-in in PATH, and scripted GPUs.
struct MpsMachine {
  MpsMachine() {
    need(make_directories(dir.path() + "/bin"));
    need(write_file_atomic(dir.path() + "/gpus", "GPU-a\nGPU-b\n"));
    need(write_file_atomic(dir.path() + "/0", "memory_total 85899345920\nmemory_used 0\n"));
    const std::string script = source_path("/tests/standins/fake_mps_control.sh");
    REQUIRE(::symlink(script.c_str(), (dir.path() + "/bin/" + Mps::kProgram).c_str()) == 0);
    set("PATH", dir.path() + "/bin:" + path);
    set("DET_SCRIPTED_NVML", dir.path());
    REQUIRE(Nvml::load(build_path("/tests/scripted_nvml/libnvidia-ml.so.1").c_str()));
  }
  ~MpsMachine() {
    if (const pid_t daemon = pid(); daemon > 0) ::kill(daemon, SIGKILL);
    set("PATH", path);
    for (const char* name : {"DET_SCRIPTED_NVML", "FAKE_MPS_ERROR"}) ::unsetenv(name);
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  Result<std::unique_ptr<Mps>> start(int slots_per_device = 2, bool task_users = false) const {
    const std::vector<Device> gpus{{"CUDA", "b", "GPU-a", 0}, {"CUDA", "b", "GPU-b", 1}};
    return Mps::start(
        {dir.path() + "/mps", need(divided(gpus, slots_per_device)), slots_per_device, task_users});
  }
  /// The daemon; 0 if none runs.
  pid_t pid() const {
    const auto text = read_file(dir.path() + "/mps/pipes/nvidia-cuda-mps-control.pid");
    return text ? static_cast<pid_t>(std::atoi(text->c_str())) : 0;
  }
  std::string commands() const { return need(read_file(dir.path() + "/mps/log/commands")); }

  const std::string path = environment_variable("PATH");
  TemporaryDirectory dir = need(TemporaryDirectory::create());
};

}  // namespace

TEST_CASE("the MPS daemon starts for the GPUs of the slots, and limits each client to its share", "[mps]") {
  MpsMachine machine;
  const auto mps = need(machine.start());
  CHECK(mps->pipes() == machine.dir.path() + "/mps/pipes");
  REQUIRE(machine.pid() > 0);
  // The driver does not report the memory of GPU-b.
  CHECK(machine.commands() ==
        "-d GPU-a,GPU-b\nset_default_active_thread_percentage 50\nset_default_device_pinned_mem_limit 0 "
        "40960M\n");
  const pid_t daemon = machine.pid();
  mps->stop();
  CHECK(machine.pid() == 0);
  CHECK(wait_until(
      [&] {
        return ::kill(daemon, 0) != 0 ||
               read_file("/proc/" + std::to_string(daemon) + "/stat").value_or(" Z ").find(" Z ") !=
                   std::string::npos;
      },
      std::chrono::seconds(10)));
}

TEST_CASE("the next agent takes the MPS daemon over, and replaces one that has died", "[mps]") {
  MpsMachine machine;
  (void)need(machine.start());
  const pid_t first = machine.pid();
  const auto mps = need(machine.start(4));
  CHECK(machine.pid() == first);
  CHECK_THAT(machine.commands(), Catch::Contains("get_default_active_thread_percentage\n"
                                                 "set_default_active_thread_percentage 25\n"
                                                 "set_default_device_pinned_mem_limit 0 20480M\n"));
  // A daemon that has died leaves its pipes.
  need(write_file_atomic(mps->pipes() + "/nvidia-cuda-mps-control.pid", "999999999"));
  need(write_file_atomic(mps->pipes() + "/left", ""));
  ::kill(first, SIGKILL);
  (void)need(machine.start());
  CHECK(machine.pid() != first);
  CHECK_FALSE(path_exists(mps->pipes() + "/left"));
}

TEST_CASE("an agent without the MPS program, or for tasks of several users, is refused with the remedy",
          "[mps]") {
  MpsMachine machine;
  CHECK_THAT(machine.start(2, true).error().message,
             Catch::Contains("slots_per_device: 2: MPS serves one user at a time") &&
                 Catch::Contains("run the agent as another user"));
  CHECK_FALSE(path_exists(machine.dir.path() + "/mps"));
  MpsMachine::set("FAKE_MPS_ERROR", "An instance of this daemon is already running");
  CHECK_THAT(
      machine.start().error().message,
      Catch::StartsWith("slots_per_device: 2: nvidia-cuda-mps-control: An instance of this daemon is already "
                        "running; its log is in " +
                        machine.dir.path() + "/mps/log"));
  MpsMachine::set("PATH", machine.dir.path());
  const auto missing = machine.start();
  CHECK(missing.error().code == Code::kFailedPrecondition);
  CHECK_THAT(missing.error().message, Catch::Contains("nvidia-cuda-mps-control is not in PATH; install it") &&
                                          Catch::EndsWith("or set slots_per_device: 1"));
}
