#include "agent/gpu/mps.h"

#include <set>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/gpu/nvml.h"

namespace det::agent {
namespace {

constexpr Duration kControlTimeout = std::chrono::seconds(20);
constexpr const char* kNoEnd = "it has not ended within 20 s";
constexpr std::size_t kMaxSaid = 300;  // bytes
constexpr double kMebibyte = 1 << 20;

/// UUIDs of the GPUs of the slots, each once.
std::vector<std::string> gpus_of(const std::vector<Device>& devices) {
  std::vector<std::string> uuids;
  std::set<std::string> known;
  for (const Device& device : devices)
    if (known.insert(device.uuid).second) uuids.push_back(device.uuid);
  return uuids;
}

/// Commands that limit each client to its share. The daemon numbers the GPUs as in its CUDA_VISIBLE_DEVICES.
std::string limits(const std::vector<std::string>& gpus, int slots_per_device) {
  std::string commands =
      "set_default_active_thread_percentage " + std::to_string(thread_percentage(slots_per_device)) + "\n";
  const auto nvml = Nvml::load();
  if (!nvml) return commands;
  nvml->select(gpus);
  const std::vector<GpuReading> readings = nvml->read();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (!readings[i].memory_total) continue;
    const auto share = static_cast<std::int64_t>(*readings[i].memory_total / kMebibyte / slots_per_device);
    commands +=
        "set_default_device_pinned_mem_limit " + std::to_string(i) + " " + std::to_string(share) + "M\n";
  }
  return commands;
}

/// The error of a failed run of the program, with what it printed.
Status failed(std::string said, const std::string& otherwise, const std::string& log) {
  said = trim(make_utf8(said.substr(0, kMaxSaid)));
  return fail(Code::kFailedPrecondition, std::string(Mps::kProgram) + ": " +
                                             (said.empty() ? otherwise : said) + "; its log is in " + log);
}

Status missing(const Error& error) {
  if (error.code != Code::kNotFound) return tl::unexpected(error);
  return fail(
      Code::kFailedPrecondition,
      std::string(Mps::kProgram) +
          " is not in PATH; install it (it belongs to the GPU driver, in Ubuntu to nvidia-compute-utils), "
          "or set slots_per_device: 1");
}

}  // namespace

Result<std::unique_ptr<Mps>> Mps::start(const Options& options) {
  const std::string setting = "slots_per_device: " + std::to_string(options.slots_per_device) + ": ";
  const auto refuse = [&](const Error& error) {
    return fail(Code::kFailedPrecondition, setting + error.message);
  };
  if (options.task_users) {
    return fail(Code::kFailedPrecondition,
                setting +
                    "MPS serves one user at a time, and an agent of root gives each task a user of its own; "
                    "run the agent as another user, as its systemd unit does, or set sandbox: off");
  }
  std::unique_ptr<Mps> mps(new Mps(options.directory));
  for (const std::string& path : {mps->pipes(), mps->logs()}) TRY(make_directories(path, 0700));
  const std::vector<std::string> gpus = gpus_of(options.devices);
  // Only a daemon that runs replies. It is that of an earlier agent, and tasks may use it.
  const bool runs = mps->send("get_default_active_thread_percentage\n").has_value();
  if (!runs) {
    // Pipes of a daemon that has died, for example with the machine.
    TRY(remove_tree(mps->pipes()));
    TRY(make_directories(mps->pipes(), 0700));
    if (auto begun = mps->begin(join(gpus, ",")); !begun) return refuse(begun.error());
  }
  if (auto sent = mps->send(limits(gpus, options.slots_per_device)); !sent) return refuse(sent.error());
  log::info(runs ? "MPS control daemon taken over" : "MPS control daemon started",
            {{"gpus", gpus.size()}, {"slots_per_device", options.slots_per_device}});
  return mps;
}

std::vector<std::string> Mps::environment(const std::string& visible) const {
  std::vector<std::string> changes{"CUDA_MPS_PIPE_DIRECTORY=" + pipes(), "CUDA_MPS_LOG_DIRECTORY=" + logs()};
  if (!visible.empty()) changes.push_back("CUDA_VISIBLE_DEVICES=" + visible);
  return environment_with(changes);
}

Status Mps::begin(const std::string& visible) const {
  const std::string output = logs() + "/start";
  (void)remove_tree(output);
  // A file, not a pipe: the daemon may keep its output open.
  auto child = Child::spawn({.argv = {kProgram, "-d"},
                             .env = environment(visible),
                             .out = Stream::file(output),
                             .err = Stream::file(output),
                             .new_session = true});
  if (!child) return missing(child.error());
  const auto status = child->wait(kControlTimeout);
  if (status && status->ok()) {
    child->detach();
    return {};
  }
  return failed(read_file(output).value_or(""), status ? to_string(*status) : kNoEnd, logs());
}

Status Mps::send(const std::string& commands) const {
  const auto result =
      run_process({.argv = {kProgram}, .env = environment("")}, {.timeout = kControlTimeout}, commands);
  if (!result) return missing(result.error());
  if (result->ok()) return {};
  return failed(result->err + result->out, result->timed_out ? kNoEnd : to_string(result->status), logs());
}

void Mps::stop() const {
  if (auto stopped = send("quit\n"); !stopped)
    log::warn("MPS control daemon not ended", {{"reason", stopped.error().message}});
}

}  // namespace det::agent
