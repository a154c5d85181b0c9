#include "agent/config.h"

#include <unistd.h>

#include <charconv>
#include <climits>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/base/units.h"

namespace det::agent {
namespace {

constexpr std::int64_t kMaxSlots = 1024;
constexpr std::int64_t kLeastMemory = 64 << 20;
constexpr int kMaxSlotsPerDevice = 48;  // clients of an MPS server on a GPU

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, HOST_NAME_MAX) == 0 && name[0] != '\0' ? name : "agent";
}

/// Reads "http://HOST:PORT/" as copied from a browser, HOST:PORT, or https://HOST:PORT.
Result<std::string> read_master(std::string_view text) {
  const std::string_view scheme = text.starts_with("https://") ? "https://" : "";
  text.remove_prefix(text.starts_with("http://") ? 7 : scheme.size());
  while (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  // The last colon, so that IPv6 addresses keep theirs.
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (colon == 0 || port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || text.find('/') != std::string::npos) {
    return fail(Code::kInvalidArgument, "master: must be HOST:PORT, such as 127.0.0.1:8080");
  }
  return std::string(scheme) + std::string(text);
}

/// Reads seconds since 1970, an RFC 3339 time, or a duration from now. "" is nothing.
Result<std::optional<WallTime>> read_until(const std::string& text) {
  if (text.empty()) return std::nullopt;
  constexpr std::size_t kEpochDigits = 10;
  std::optional<WallTime> at;
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    // Shorter numbers would be times before 2001, or durations without a unit.
    if (text.size() == kEpochDigits) at = WallTime{std::stoll(text) * 1'000'000};
  } else if (const auto time = parse_rfc3339(text)) {
    at = *time;
  } else if (const auto duration = parse_duration(text); duration && *duration > Duration(0)) {
    at = WallTime{wall_now().micros + duration->count()};
  }
  if (at) return at;
  return fail(Code::kInvalidArgument,
              "until: must be seconds since 1970, a time such as 2030-01-31T12:00:00Z or a duration such as "
              "2h, got \"" +
                  text + "\"");
}

/// Reads a duration. "" is nothing.
Result<std::optional<Duration>> read_idle(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto duration = parse_duration(text);
  if (duration && *duration > Duration(0)) return *duration;
  return fail(Code::kInvalidArgument, "exit_when_idle: must be a duration such as 2m, got \"" + text + "\"");
}

/// Reads one of the names of SlotType.
Result<SlotType> read_slot_type(const std::string& text) {
  if (text == "auto") return SlotType::kAuto;
  if (text == "cuda") return SlotType::kCuda;
  if (text == "cpu") return SlotType::kCpu;
  if (text == "none") return SlotType::kNone;
  return fail(Code::kInvalidArgument, "slot_type: must be auto, cuda, cpu or none, got \"" + text + "\"" +
                                          did_you_mean(text, {"auto", "cuda", "cpu", "none"}));
}

Result<SandboxMode> read_sandbox(const std::string& text) {
  if (text == "required") return SandboxMode::kRequired;
  if (text == "best_effort") return SandboxMode::kBestEffort;
  if (text == "off") return SandboxMode::kOff;
  return fail(Code::kInvalidArgument, "must be required, best_effort or off, got \"" + text + "\"" +
                                          did_you_mean(text, {"required", "best_effort", "off"}));
}

Result<TaskNetwork> read_task_network(const std::string& text) {
  if (text == "host") return TaskNetwork::kHost;
  if (text == "cluster") return TaskNetwork::kCluster;
  return fail(Code::kInvalidArgument,
              "must be host or cluster, got \"" + text + "\"" + did_you_mean(text, {"host", "cluster"}));
}

/// Reads processors, such as 2 or 0.5, in thousandths. "" is 0.
Result<std::int64_t> read_cpus(const std::string& text) {
  constexpr double kMinCpus = 0.01, kMaxCpus = 100'000;
  if (text.empty()) return 0;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= kMinCpus && number <= kMaxCpus)
    return static_cast<std::int64_t>(number * 1000);
  return fail(Code::kInvalidArgument, "must be a number of CPUs such as 2 or 0.5, got \"" + text + "\"");
}

/// The non-empty parts of a list with commas.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& part : split(text, ','))
    if (const auto word = trim(part); !word.empty()) words.emplace_back(word);
  return words;
}

/// Reads "/data, /scratch:rw".
Result<std::vector<BindMount>> read_bind_mounts(const std::string& text) {
  std::vector<BindMount> mounts;
  for (std::string word : words_of(text)) {
    BindMount mount;
    mount.writable = word.ends_with(":rw");
    if (mount.writable || word.ends_with(":ro")) word.resize(word.size() - 3);
    mount.path = word;
    if (!mount.path.starts_with('/') || mount.path.size() == 1)
      return fail(Code::kInvalidArgument,
                  "\"" + word + "\" must be an absolute path below /, such as /data or /scratch:rw");
    if (!path_exists(mount.path))
      return fail(Code::kInvalidArgument, mount.path + " does not exist; create it");
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

/// Reads "unix:///run/podman/podman.sock", or the path alone. "" is none.
Result<std::string> read_engine(std::string_view text) {
  if (text.starts_with("unix://")) text.remove_prefix(7);
  // The kernel's limit of the path of a socket.
  if (text.empty() || (text.starts_with('/') && text.size() < 108)) return std::string(text);
  return fail(Code::kInvalidArgument,
              "must be the path of a socket, such as unix:///run/podman/podman.sock, got \"" +
                  std::string(text) + "\"");
}

/// Reads "docker.io/library, registry.example.org/team".
Result<std::vector<std::string>> read_registries(const std::string& text) {
  std::vector<std::string> found;
  for (std::string word : words_of(text)) {
    while (word.ends_with('/')) word.pop_back();
    if (word.empty() || word.find("://") != std::string::npos)
      return fail(Code::kInvalidArgument, "must be names such as docker.io/library, got \"" + text + "\"");
    found.push_back(std::move(word));
  }
  return found;
}

/// Reads "FIRST:COUNT". Users below 1000 belong to the system.
Status read_task_uids(const std::string& text, Settings& settings) {
  constexpr std::uint64_t kFirst = 1000, kEnd = 0xFFFF'FFFE;
  const std::vector<std::string> parts = split(text, ':');
  std::uint64_t numbers[2] = {0, 0};
  bool good = parts.size() == 2;
  for (std::size_t i = 0; good && i < 2; ++i) {
    const char* const last = parts[i].data() + parts[i].size();
    const auto [end, error] = std::from_chars(parts[i].data(), last, numbers[i]);
    good = error == std::errc() && end == last && numbers[i] <= kEnd;
  }
  if (!good || numbers[0] < kFirst || numbers[1] == 0 || numbers[0] + numbers[1] > kEnd) {
    return fail(
        Code::kInvalidArgument,
        "must be FIRST:COUNT with users from 1000 on, such as 1900000000:65536, got \"" + text + "\"");
  }
  settings.task_uid_first = static_cast<std::uint32_t>(numbers[0]);
  settings.task_uid_count = static_cast<std::uint32_t>(numbers[1]);
  return {};
}

/// Finds settings that need a sandbox.
void check_without_sandbox(const Settings& settings, std::vector<Problem>& problems) {
  const auto need = [&](bool set, const char* key, const std::string& what) {
    if (set)
      problems.push_back(
          {"E-CFG-RANGE", key, what + " a sandbox, but sandbox is off; set sandbox: required", "", 0, 0});
  };
  need(settings.task_network == TaskNetwork::kCluster, "task_network", "cluster needs");
  need(settings.limits_tasks(), "memory_per_slot", "limits of tasks need");
  need(!settings.container_engine.empty(), "container_engine", "tasks in images need");
}

/// Checks that GPUs may be divided.
void check_slots_per_device(const Settings& settings, std::vector<Problem>& problems) {
  const auto refuse = [&](const std::string& text) {
    problems.push_back({"E-CFG-RANGE", "slots_per_device", text, "", 0, 0});
  };
  const bool cpus = settings.slot_type == SlotType::kCpu || settings.slot_type == SlotType::kNone;
  if (settings.slots_per_device > kMaxSlotsPerDevice) {
    refuse("must be from 1 to " + std::to_string(kMaxSlotsPerDevice) + ", got " +
           std::to_string(settings.slots_per_device));
  } else if (settings.slots_per_device > 1 && (cpus || settings.artificial_slots > 0)) {
    refuse(
        "divides GPUs, and the agent offers none; set it to 1, or slot_type to cuda. cpu_slots divides CPUs");
  }
}

/// Options of the sandbox of tasks.
std::vector<OptionKey> sandbox_keys() {
  using Kind = OptionKey::Kind;
  return {
      {"sandbox", Kind::kString, "best_effort",
       "Sandbox of tasks: required (the agent does not start without a full one), best_effort (what the "
       "machine permits, with a warning) or off (tasks have all rights of the agent). Without one a "
       "trial starts about 0.3 s later: it loads LibTorch itself."},
      {"task_network", Kind::kString, "host",
       "Network of tasks: host (that of this machine) or cluster (the master and their own loopback "
       "interface; needs a sandbox). With cluster, gangs over several agents and storages in buckets are "
       "refused."},
      {"memory_per_slot", Kind::kBytes, "0",
       "Memory limit of a task for each of its slots; a task without slots has that of one. Needs "
       "control "
       "groups and a sandbox. 0: none."},
      {"cpus_per_slot", Kind::kString, "",
       "Limit of processor time of a task for each of its slots, in CPUs: 2 or 0.5. As memory_per_slot. "
       "Empty: none."},
      {"bind_mounts", Kind::kString, "",
       "Directories that tasks see beside the system's: /data, /scratch:rw. With :rw they write as its "
       "owner."},
      {"container_engine", Kind::kString, "",
       "Socket of podman or Docker, such as unix:///run/podman/podman.sock. Tasks with environment.image "
       "then run in the files of the image, in the sandbox of all tasks. Empty: such tasks are refused."},
      {"image_registries", Kind::kString, "",
       "Registries from which images are pulled, with commas: docker.io/library, "
       "registry.example.org/team. Empty: only images that the engine has."},
      {"task_uids", Kind::kString, "1900000000:65536",
       "Users of tasks if the agent is root, as FIRST:COUNT. Each allocation has one of its own."},
      {"pass_environment", Kind::kString, "",
       "Variables of the agent that tasks get, with commas. Of others they get PATH, locale and GPU "
       "settings."},
  };
}

}  // namespace

const OptionTable& option_table() {
  using Kind = OptionKey::Kind;
  static const OptionTable table = [] {
    OptionTable made{
        "det-agent",
        "Offers the slots of this machine to a master and runs its allocations.",
        "DET_AGENT_",
        {
            {"master", Kind::kString, "127.0.0.1:8080",
             "Address of the master: HOST:PORT, or https://HOST:PORT for TLS."},
            {"join_token_file", Kind::kString, "",
             "File with a join token, until the agent has joined: `det join-token create`, or on the "
             "master's "
             "machine its DATA_DIR/agent-join-token. Empty: join-token in data_dir."},
            {"security.tls.master_cert", Kind::kString, "",
             "File with trusted certificates (PEM). Empty: the certificate named in the join token, else "
             "those "
             "of the system."},
            {"security.tls.master_cert_name", Kind::kString, "",
             "Name in the master's certificate, if it differs from the host of `master`."},
            {"data_dir", Kind::kString, "/var/lib/determinant/agent",
             "Directory of allocations and code archives. One agent per directory. Built models are in the "
             "cache of the agent's user (~/.cache/determinant/models), or here if the user has no home."},
            {"id", Kind::kString, "", "Agent id, unique in the cluster. Empty: the host name."},
            {"pool", Kind::kString, "", "Resource pool. Empty: the default pool of the master."},
            {"slot_type", Kind::kString, "auto",
             "Devices to offer as slots: auto (CUDA devices if present, else CPUs), cuda, cpu or none."},
            {"cpu_slots", Kind::kInt, "1", "Number of slots that share the CPUs, if slots are CPUs."},
            {"slots_per_device", Kind::kInt, "1",
             "Number of slots that share each GPU through NVIDIA MPS (nvidia-cuda-mps-control). A task may "
             "use "
             "its share of the processors and of the memory. Not for MIG devices."},
            {"artificial_slots", Kind::kInt, "0",
             "Number of slots without a device, for tests. 0: offer devices."},
            {"cache_size", Kind::kBytes, "20 GiB",
             "Disk limit for cached code archives, built models and images. The least recently used are "
             "removed first."},
            {"compile_timeout", Kind::kDuration, "15m", "Time limit for building a model."},
            {"stop_timeout", Kind::kDuration, "60s",
             "After SIGTERM, time for trials to save a checkpoint and to move to other agents. Then, or at a "
             "second signal, their processes are ended. 0s: end them at once."},
            {"until", Kind::kString, "",
             "Time at which this machine is taken away: seconds since 1970, a time such as "
             "2030-01-31T12:00:00Z, "
             "or a duration from the start such as 2h. The agent stops early enough for its trials to save: "
             "stop_timeout and the kill grace before. Empty: none."},
            {"exit_when_idle", Kind::kString, "",
             "Duration without allocations after which the agent exits, such as 2m. Empty: never."},
            {"ephemeral", Kind::kBool, "false",
             "The agent does not come back after it has left: the master then removes it, its settings and "
             "its "
             "identity. If the agent is killed, its tasks are killed as well."},
        }};
    std::vector<OptionKey> sandbox = sandbox_keys();
    for (OptionKey& key : sandbox) made.keys.push_back(std::move(key));
    made.keys.push_back(
        {"device_check", Kind::kString, "",
         "Program with arguments that checks the GPU in CUDA_VISIBLE_DEVICES before its slot returns to "
         "service. It exits with 0 if the GPU is good. Empty: det-harness --check-device cuda."});
    made.keys.push_back(
        {"log_level", Kind::kString, "info", "Level of the log: trace, debug, info, warn or error."});
    made.keys.push_back(
        {"log_json", Kind::kBool, "false", "Write one JSON object per line to the agent's log."});
    return made;
  }();
  return table;
}

Result<Settings> read_settings(const Options& options) {
  // Collects all problems before it fails.
  std::vector<Problem> problems;
  auto take = [&](const char* key, auto result, auto& into) {
    if (result) {
      into = std::move(*result);
    } else {
      problems.push_back({"E-CFG-RANGE", key, result.error().message, "", 0, 0});
    }
  };
  auto count = [&](const char* key, std::int64_t least) -> Result<int> {
    const std::int64_t value = options.integer(key);
    if (value >= least && value <= kMaxSlots) return static_cast<int>(value);
    return fail(Code::kInvalidArgument, "must be from " + std::to_string(least) + " to " +
                                            std::to_string(kMaxSlots) + ", got " + std::to_string(value));
  };
  Settings settings;
  take("master", read_master(options.text("master")), settings.master);
  take("slot_type", read_slot_type(options.text("slot_type")), settings.slot_type);
  take("cpu_slots", count("cpu_slots", 1), settings.cpu_slots);
  take("artificial_slots", count("artificial_slots", 0), settings.artificial_slots);
  take("slots_per_device", count("slots_per_device", 1), settings.slots_per_device);
  check_slots_per_device(settings, problems);
  take("log_level", parse_log_level(options.text("log_level")), settings.log.level);
  take("sandbox", read_sandbox(options.text("sandbox")), settings.sandbox);
  take("task_network", read_task_network(options.text("task_network")), settings.task_network);
  settings.memory_per_slot = options.bytes("memory_per_slot");
  if (settings.memory_per_slot != 0 && settings.memory_per_slot < kLeastMemory)
    problems.push_back({"E-CFG-RANGE", "memory_per_slot", "must be 0 or at least 64 MiB", "", 0, 0});
  take("cpus_per_slot", read_cpus(options.text("cpus_per_slot")), settings.cpu_millis_per_slot);
  take("bind_mounts", read_bind_mounts(options.text("bind_mounts")), settings.bind_mounts);
  take("container_engine", read_engine(options.text("container_engine")), settings.container_engine);
  take("image_registries", read_registries(options.text("image_registries")), settings.image_registries);
  if (settings.sandbox == SandboxMode::kOff) check_without_sandbox(settings, problems);
  if (auto uids = read_task_uids(options.text("task_uids"), settings); !uids)
    problems.push_back({"E-CFG-RANGE", "task_uids", uids.error().message, "", 0, 0});
  settings.pass_environment = words_of(options.text("pass_environment"));
  for (const std::string& word : split(options.text("device_check"), ' '))
    if (!word.empty()) settings.device_check.push_back(word);
  settings.data_dir = options.text("data_dir");
  if (settings.data_dir.empty())
    problems.push_back({"E-CFG-RANGE", "data_dir", "must name a directory", "", 0, 0});
  settings.id = options.text("id").empty() ? host_name() : options.text("id");
  settings.pool = options.text("pool");
  settings.join_token_file = options.text("join_token_file").empty() ? settings.data_dir + "/join-token"
                                                                     : options.text("join_token_file");
  settings.master_cert = options.text("security.tls.master_cert");
  settings.master_cert_name = options.text("security.tls.master_cert_name");
  // Names appear in tables and log lines, so control characters are rejected.
  for (const auto& [key, name] : {std::pair{"id", settings.id}, std::pair{"pool", settings.pool}}) {
    if (name.size() > 128 || has_control_characters(name) || find_bad_utf8(name)) {
      problems.push_back(
          {"E-CFG-RANGE", key, "must have at most 128 characters and no control characters", "", 0, 0});
    }
  }
  settings.cache_bytes = options.bytes("cache_size");
  settings.stop_timeout = options.duration("stop_timeout");
  take("until", read_until(options.text("until")), settings.until);
  take("exit_when_idle", read_idle(options.text("exit_when_idle")), settings.exit_when_idle);
  settings.ephemeral = options.boolean("ephemeral");
  settings.compile_timeout = options.duration("compile_timeout");
  settings.log.json = options.boolean("log_json");
  settings.log.program = "agent";
  if (!problems.empty()) return fail(std::move(problems));
  return settings;
}

}  // namespace det::agent
