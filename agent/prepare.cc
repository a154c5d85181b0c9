#include "agent/prepare.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "agent/gpu/driver_files.h"
#include "agent/images.h"
#include "agent/master_link/code_archive.h"
#include "agent/shared_libraries.h"
#include "agent/task/log_file.h"
#include "agent/task/master_relay.h"
#include "agent/task_sandbox.h"
#include "agent/upstream_info.h"
#include "common/archive/archive.h"
#include "common/base/exit_codes.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/base/wait.h"
#include "common/build/cache.h"
#include "common/build/model_build.h"
#include "common/crypto/digest.h"
#include "common/sandbox/confine.h"
#include "det/v1/agent.methods.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

/// Builds at a time on a machine: a compiler takes a core and up to 2 GB.
constexpr int kCpusPerBuild = 4, kMaxBuilds = 4;
constexpr char kModelDirectory[] = "the model directory";

/// Returns the compiler's first error on a line of its own, or "".
std::string first_error(const std::string& output) {
  for (const std::string& line : split(output, '\n'))
    if (line.find(": error: ") != std::string::npos) return "\n" + line;
  return "";
}

Exit failed(std::string message) { return {Exit::Kind::kFailed, kExitFailed, std::move(message)}; }
/// A failure of the submitted files: no restart can succeed.
Exit refused(std::string message) { return {Exit::Kind::kFailed, kExitFinal, std::move(message)}; }
Exit lost(const Error& error) { return {Exit::Kind::kLost, 0, error.message}; }

/// Returns the address of the relay, as a task sees it.
std::string relay_address(bool tls) {
  return (tls ? "https://127.0.0.1:" : "127.0.0.1:") + std::to_string(kRelayPort);
}

/// Returns HOST of HOST:PORT or [HOST]:PORT.
std::string host_of(std::string_view address) {
  address = address.substr(0, address.rfind(':'));
  const bool v6 = address.starts_with('[') && address.ends_with(']');
  return std::string(v6 ? address.substr(1, address.size() - 2) : address);
}

/// One preparation, with the log that users read.
class Preparation {
 public:
  Preparation(const Order& order, const TaskDir& dir, const Site& site, LogWriter log, std::stop_token stop)
      : order_(order), dir_(dir), site_(site), log_(std::move(log)), stop_(std::move(stop)) {}

  std::optional<Exit> run() {
    if (auto exit = unpack_context()) return exit;
    if (auto made = make_places(); !made) return lost(made.error());
    if (stop_.stop_requested()) return Exit{Exit::Kind::kStopped, 0, "stopped"};
    TaskSpec spec{.cwd = dir_.workdir(),
                  .ends_with_agent = site_.settings.ephemeral,
                  .grace = order_.grace,
                  .hang_timeout = std::chrono::seconds(order_.message.hang_timeout_seconds())};
    if (!order_.message.build().empty()) return build_only();
    if (auto exit = check_network()) return exit;
    if (auto exit = check_slots()) return exit;
    std::vector<std::string> command(order_.message.entrypoint().begin(), order_.message.entrypoint().end());
    if (command.empty()) return failed("entrypoint: must not be empty");
    // A list is never a trial class or a compiled step; a single string is one of them, or a shell command.
    if (!order_.message.entrypoint_is_list()) {
      if (const auto trial = build::parse_trial_name(command[0])) {
        if (auto exit = build(*trial)) return exit;
        command = harness_command(model_ + "/model.so:" + trial->trial_class);
        spec.attaches = true;
      } else if (is_compiled_step(command[0])) {
        command = harness_command(dir_.workdir() + "/" + command[0]);
        spec.attaches = true;
      } else {
        command = {"/bin/sh", "-c", command[0]};
      }
    }
    if (auto exit = choose_image(spec.attaches)) return exit;
    const bool hook = path_exists(dir_.workdir() + "/startup-hook.sh");
    if (auto linked = spec.attaches ? Status() : link_model(dir_); !linked)
      log("WARNING",
          "Determined AI's Python library cannot find the model directory: " + linked.error().message);
    spec.argv = after_pool_hook(order_.message.startup_hook(),
                                task_command(command, hook, image_ ? image_->root : ""));
    // det-harness alone runs no Python.
    spec.env = environment(!spec.attaches || hook || !order_.message.startup_hook().empty());
    if (auto exit = enclose(spec)) return exit;
    if (auto written = dir_.write_spec(spec); !written) return lost(written.error());
    // After the spec: the entries of this allocation are fresh and stay. Only a new entry can exceed the
    // limit.
    if (has_new_entry_) trim_caches(site_);
    return std::nullopt;
  }

  void log(const std::string& level, const std::string& text) {
    log_.append(LogStream::kAgent, level + ": " + text);
  }

 private:
  std::optional<Exit> unpack_context() {
    if (order_.message.code_archive().empty()) {
      const Status made = make_directories(dir_.workdir(), 0700);
      return made ? std::nullopt : std::optional(lost(made.error()));
    }
    const auto archive =
        fetch_code_archive(order_.message, site_.channel, site_.data.contexts(), stop_, has_new_entry_);
    if (!archive) return end_of(archive.error(), kModelDirectory);
    if (auto done = unpack(*archive, dir_.workdir()); !done) return end_of(done.error(), kModelDirectory);
    return std::nullopt;
  }

  /// Refuses a task that needs hosts beside the master, if the agent's tasks do not reach them.
  std::optional<Exit> check_network() {
    if (!site_.own_network) return std::nullopt;
    std::string need;
    if (order_.message.gang_size() > 1) need = "a trial over several agents connects to the other agents";
    if (const std::string bucket = bucket_storage(order_.message.experiment_config()); !bucket.empty())
      need = "checkpoint_storage of type " + bucket + " is another host";
    if (need.empty()) return std::nullopt;
    const std::string message = need + ", but tasks of agent " + site_.settings.id +
                                " reach the master only (task_network: cluster); choose another resource "
                                "pool, or set task_network: host on its agents";
    log("ERROR", message);
    return refused(message);
  }

  /// Refuses slots that one task cannot use together. The scheduler does not know what is behind a slot.
  std::optional<Exit> check_slots() {
    const std::string conflict =
        conflict_of(devices_of(order_.message, site_.devices), order_.message.gang_size() > 1);
    if (conflict.empty()) return std::nullopt;
    const std::string message = "slots of agent " + site_.settings.id + " " + conflict;
    log("ERROR", message);
    return refused(message);
  }

  bool has_gpus() const {
    return order_.message.slots_size() > 0 && !site_.devices.empty() && site_.devices[0].type == "CUDA";
  }

  /// Sets `image_` if the configuration names one. A trial class needs the libraries of its compilation.
  std::optional<Exit> choose_image(bool trial_class) {
    const ImageRequest request = image_request(order_.message.experiment_config(), has_gpus());
    if (request.name.empty()) return std::nullopt;
    if (trial_class) {
      log("INFO", "environment.image is not used: a trial class runs with the libraries of the agent");
      return std::nullopt;
    }
    auto image = site_.sandboxed
                     ? get_image(request, site_.settings, site_.data.images(), stop_, has_new_entry_)
                     : fail(Code::kNotFound, "images need the sandbox, which is off on this agent");
    if (!image) {
      const Exit end = end_of(image.error(), "the image");
      return end.kind == Exit::Kind::kFailed ? refused(end.message) : end;
    }
    image_ = std::move(*image);
    if (has_gpus()) driver_ = driver_files(driver_directories());
    return std::nullopt;
  }

  Status make_places() {
    TRY(make_directories(dir_.run() + "/home", 0700));
    TRY(make_directories(dir_.tmp(), 0700));
    TRY(make_directories(dir_.beside(), 0700));
    // As /tmp everywhere: the sandbox is created without the privilege to enter a directory of the task.
    return ::chmod(dir_.tmp().c_str(), 01777) == 0 ? Status() : fail_errno(dir_.tmp());
  }

  /// Gives the task's directories to its user and describes its sandbox.
  std::optional<Exit> enclose(TaskSpec& spec) {
    if (!site_.sandboxed && order_.message.event_files_size() > 0)
      return refused("this agent runs tasks without a sandbox, in which TensorBoard gets its event files");
    if (!site_.sandboxed && task_account(order_.message.experiment_config()))
      return refused("this agent runs tasks without a sandbox, in which they get the user of agentUserGroup");
    if (!site_.sandboxed) {
      if (shared_memory(order_.message.experiment_config()) > 0)
        log("WARNING", "resources.shm_size has no effect: this agent runs tasks without a sandbox");
      return std::nullopt;
    }
    auto sandbox = task_sandbox(order_, dir_, site_, model_, image_ ? image_->root : "");
    if (!sandbox) {
      log("ERROR", sandbox.error().message);
      const Code code = sandbox.error().code;
      return code == Code::kPermissionDenied || code == Code::kInvalidArgument
                 ? refused(sandbox.error().message)
                 : lost(sandbox.error());
    }
    if (sandbox->shm_bytes > 0 && !site_.mps_pipes.empty() && has_gpus())
      log("WARNING", "resources.shm_size has no effect: tasks that share a GPU have /dev/shm of the machine");
    for (const DriverFile& file : driver_)
      sandbox->mounts.push_back(
          {file.path, std::string(kDriverPlace) + "/" + file.name, SandboxMount::Access::kRead});
    const auto change = run_as_owner(*sandbox, storage_directory(order_.message.experiment_config()).path(),
                                     site_.settings.task_uid_first);
    if (!change) return lost(change.error());
    if (!change->empty()) log("WARNING", *change);
    for (const std::string& path : {dir_.workdir(), dir_.beside(), dir_.run(), dir_.upstream()}) {
      if (auto given = path_exists(path) ? give_tree(path, sandbox->uid) : Status(); !given)
        return lost(given.error());
    }
    spec.sandbox = std::move(*sandbox);
    if (auto limited = limit(spec); !limited) return lost(limited.error());
    if (site_.own_network) spec.master = without_scheme(site_.settings.master);
    return std::nullopt;
  }

  /// Creates the control group of the task, if tasks have limits.
  Status limit(TaskSpec& spec) {
    if (!site_.groups) return {};
    const std::int64_t slots = std::max(1, order_.message.slots_size());
    // Agents of one machine may have allocations with equal ids.
    const std::string name = site_.data.instance() + "." + order_.message.allocation_id();
    TRY_ASSIGN(spec.groups, make_group(*site_.groups, name,
                                       {.memory_bytes = site_.settings.memory_per_slot * slots,
                                        .cpu_millis = site_.settings.cpu_millis_per_slot * slots,
                                        .processes = kMaxTaskProcesses}));
    return {};
  }

  /// Returns the command that runs the compiler in its sandbox. `work`: the directory that it writes to.
  /// `header`: its precompiled header, or "".
  Result<std::vector<std::string>> enclose_compiler(const std::vector<std::string>& argv,
                                                    const std::string& work, const std::string& header) {
    TRY_ASSIGN(const Sandbox sandbox, build_sandbox(order_, dir_, site_, work, header));
    std::vector<std::string> inner{site_.prefix + "/bin/det-task-init", "exec",
                                   order_.uid ? std::to_string(*order_.uid) : "-"};
    inner.insert(inner.end(), argv.begin(), argv.end());
    std::vector<std::string> command = sandbox_command(sandbox, inner);
    // A source can embed /proc/self/environ: the agent's own variables stay outside.
    command.insert(command.begin() + 1,
                   {"--chdir", dir_.workdir(), "--clearenv", "--setenv", "PATH", search_path(), "--setenv",
                    "LC_ALL", "C", "--setenv", "TMPDIR", work, "--setenv", "HOME", work});
    return command;
  }

  /// A bad archive is the user's failure; anything else, such as a full disk, is the platform's.
  Exit end_of(const Error& error, const std::string& what) {
    if (error.code == Code::kCancelled) return {Exit::Kind::kStopped, 0, "stopped"};
    log("ERROR", what + " could not be prepared: " + error.message);
    const bool users = error.code == Code::kInvalidArgument || error.code == Code::kNotFound;
    return users ? failed(error.message) : lost(error);
  }

  /// Builds the trial class for the trials of the experiment, and starts nothing.
  Exit build_only() {
    const auto trial = build::parse_trial_name(order_.message.build());
    if (!trial) return failed("entrypoint " + order_.message.build() + " names no trial class");
    const std::optional<FileLock> place = take_place();
    if (!place) return {Exit::Kind::kStopped, 0, "stopped"};
    if (auto exit = build(*trial)) return *exit;
    const auto digest = read_file(model_ + "/model.sha256");
    if (!digest) return lost(digest.error());
    share();
    if (has_new_entry_) trim_caches(site_);
    return {Exit::Kind::kSucceeded, 0, *digest};
  }

  /// Waits for one of the places for builds on this machine. Returns nothing if `stop` was requested.
  std::optional<FileLock> take_place() {
    const int places = std::clamp(cpu_count() / kCpusPerBuild, 1, kMaxBuilds);
    std::optional<FileLock> place;
    bool logged = false;
    (void)wait_until(
        [&] {
          for (int i = 0; i < places && !place; ++i) {
            if (auto lock = FileLock::try_lock(site_.models + "/place-" + std::to_string(i) + ".lock"))
              place = std::move(*lock);
          }
          if (!place && !std::exchange(logged, true))
            log("INFO", "waiting: this machine compiles " + std::to_string(places) + " models at a time");
          return place || stop_.stop_requested();
        },
        site_.settings.compile_timeout);
    return place;
  }

  /// Stores the library where other agents find it. They compile it otherwise.
  void share() {
    const auto shared = SharedLibraries::of(order_.message.experiment_config());
    if (!shared) return;
    const std::string key = std::filesystem::path(model_).filename().string();
    if (auto put = shared->put(key, model_ + "/model.so"); !put)
      log::warn("built model not shared through the checkpoint storage", {{"reason", put.error().message}});
  }

  build::FindElsewhere find_elsewhere() {
    if (order_.message.library().empty()) return {};
    return [this](const std::string& key) -> Result<std::string> {
      const auto shared = SharedLibraries::of(order_.message.experiment_config());
      if (!shared) return fail(Code::kNotFound, "no storage that agents share");
      auto library = shared->get(key, order_.message.library());
      if (!library)
        log::info("built model not taken from the storage", {{"reason", library.error().message}});
      return library;
    };
  }

  /// `target`: the argument of det-harness, a trial class or a compiled step.
  std::vector<std::string> harness_command(const std::string& target) const {
    std::vector<std::string> command{site_.prefix + "/bin/det-harness", "--model-dir", dir_.workdir(),
                                     target};
    // Several processes form the trial: det-launch starts one for each slot.
    if (order_.message.slots_size() > 1 || order_.message.gang_size() > 1)
      command.insert(command.begin(), {site_.prefix + "/bin/det-launch", "--"});
    return command;
  }

  std::optional<Exit> build(const build::TrialName& trial) {
    const std::string source = trial.module + ".cpp";
    if (!path_exists(dir_.workdir() + "/" + source)) {
      const std::string message = "entrypoint " + entrypoint() + ": the model directory has no " + source;
      log("ERROR", message);
      return refused(message);
    }
    auto recipe = build::read_recipe(site_.prefix + "/share/det/model_build.json");
    if (!recipe) {
      const std::string message = "this agent cannot build " + source + ": " + recipe.error().message +
                                  "; install the training library on the agent";
      log("ERROR", message);
      return failed(message);
    }
    // The compiler runs as the user of the task.
    if (auto given = give_tree(dir_.workdir(), order_.uid); !given) return lost(given.error());
    const MonoTime begun = mono_now();
    log("INFO", "preparing " + source);
    auto outcome = build::build_model({.recipe = std::move(*recipe),
                                       .trial = trial,
                                       .source_dir = dir_.workdir(),
                                       .models_dir = site_.models,
                                       .enclose = enclosure(),
                                       .timeout = site_.settings.compile_timeout,
                                       .find_elsewhere = find_elsewhere(),
                                       .on_line = [this](const std::string& line) { log_compiler(line); }},
                                      stop_);
    if (!outcome) return build_failed(outcome.error());
    if (outcome->without_header && site_.header_missing) site_.header_missing();
    if (outcome->library.empty()) {
      log("ERROR", source + " does not compile");
      // Without a diagnostic the compiler itself has failed, for example for lack of memory.
      const std::string error = first_error(outcome->output);
      const std::string message = source + " does not compile" + error;
      return error.empty() ? failed(message) : refused(message);
    }
    model_ = std::filesystem::path(outcome->library).parent_path().string();
    if (!outcome->cached) has_new_entry_ = true;
    log("INFO", outcome->cached      ? source + " taken from the build cache"
                : outcome->elsewhere ? source + " taken from the checkpoint storage"
                                     : source + " built in " + human_duration(mono_now() - begun));
    return std::nullopt;
  }

  std::string entrypoint() const {
    return order_.message.build().empty() ? order_.message.entrypoint(0) : order_.message.build();
  }

  /// LineSplitter cuts lines that are too long for the log.
  void log_compiler(const std::string& line) {
    LineSplitter lines;
    const auto sink = [&](std::string part) { log_.append(LogStream::kStderr, std::move(part)); };
    lines.feed(line, sink);
    lines.finish(sink);
  }

  Exit build_failed(const Error& error) {
    if (error.code == Code::kCancelled) return {Exit::Kind::kStopped, 0, "stopped"};
    log("ERROR", error.message);
    // A timeout of the compiler is the user's failure, anything else the platform's.
    return error.code == Code::kDeadlineExceeded ? failed(error.message) : lost(error);
  }

  /// Returns the variables of the task. `upstream`: also writes the files for Determined AI's Python library.
  std::vector<std::string> environment(bool upstream) {
    const std::string& master = site_.settings.master;
    // The relay is an address that the master's certificate does not name.
    std::string cert_name = site_.trust.cert_name;
    if (site_.own_network && is_tls(master) && cert_name.empty()) cert_name = host_of(without_scheme(master));
    const Surroundings around{.master = site_.own_network ? relay_address(is_tls(master)) : master,
                              .cluster_id = order_.cluster_id,
                              .agent_id = site_.settings.id,
                              .devices = site_.devices,
                              .cpus = cpu_count(),
                              .port_block = site_.port_block,
                              .workdir = dir_.workdir(),
                              .run_dir = dir_.run(),
                              .programs = site_.prefix + "/bin",
                              .home = dir_.run() + "/home",
                              .base = process_environment(),
                              .pass = site_.settings.pass_environment,
                              .image = image_ ? std::optional(image_->env) : std::nullopt,
                              .driver = driver_.empty() ? "" : std::string(kDriverPlace),
                              .mps_pipes = site_.mps_pipes,
                              .slots_per_device = site_.settings.slots_per_device,
                              .master_cert = certificate(),
                              .master_cert_name = cert_name};
    std::vector<std::string> refused;
    auto lines = task_environment(order_.message, around, refused);
    if (auto told = upstream ? write_upstream_info(dir_, order_.message, around) : Status(); !told)
      log("WARNING", "Determined AI's Python library cannot find the cluster: " + told.error().message);
    if (const auto account = task_account(order_.message.experiment_config())) {
      for (std::string& line : lines)
        for (const char* name : {"USER=", "LOGNAME="})
          if (line.starts_with(name)) line = name + account->user;
    }
    for (const std::string& name : refused) {
      log("WARNING", "environment variable " + name + " is not set: the name is invalid or reserved (DET_*)");
    }
    return lines;
  }

  static std::string search_path() {
    const std::string path = environment_variable("PATH");
    return path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path;
  }

  build::Enclose enclosure() {
    if (!site_.sandboxed) return {};
    return [this](const std::vector<std::string>& argv, const std::string& work, const std::string& header) {
      return enclose_compiler(argv, work, header);
    };
  }

  /// Returns the file with the certificate of the master, readable for the task; "" if none is needed.
  std::string certificate() {
    if (site_.trust.cert_file.empty() || !site_.sandboxed) return site_.trust.cert_file;
    std::string copy = dir_.run() + "/master.pem";
    const auto text = read_file(site_.trust.cert_file);
    if (auto written = text ? replace_file(copy, *text, 0600) : tl::unexpected(text.error()); !written)
      log("WARNING", "the certificate of the master is not readable: " + written.error().message);
    return copy;
  }

  const Order& order_;
  const TaskDir& dir_;
  const Site& site_;
  std::string model_;               ///< directory of the built model
  std::optional<Image> image_;      ///< of the task
  std::vector<DriverFile> driver_;  ///< for an image with GPUs
  bool has_new_entry_ = false;      ///< in the cache of archives, models and images
  LogWriter log_;
  std::stop_token stop_;
};

}  // namespace

std::vector<std::string> task_command(const std::vector<std::string>& command, bool hook,
                                      const std::string& root) {
  if (!hook) return command;
  // The script is fixed; external input appears only as its arguments.
  constexpr char kPlain[] = "set -e; . ./startup-hook.sh; set +e; exec \"$@\"";
  // bash also names the command that failed, in functions, too.
  constexpr char kTraced[] =
      "set -eE; trap 'hook_exit=$?; echo \"error: ${BASH_SOURCE[0]##*/}, line $LINENO: $BASH_COMMAND: exit "
      "code $hook_exit\" >&2' ERR; . ./startup-hook.sh; trap - ERR; set +eE; exec \"$@\"";
  const bool bash = ::access((root + "/bin/bash").c_str(), X_OK) == 0 ||
                    ::access((root + "/usr/bin/bash").c_str(), X_OK) == 0;
  std::vector<std::string> argv{bash ? "/bin/bash" : "/bin/sh", "-c", bash ? kTraced : kPlain,
                                "startup-hook"};
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

std::vector<std::string> after_pool_hook(const std::string& script, std::vector<std::string> command) {
  if (script.empty()) return command;
  std::vector<std::string> argv{"/bin/sh", "-c",
                                "hook=$1; shift; set -e; eval \"$hook\"; set +e; unset hook; exec \"$@\"",
                                "startup-hook", script};
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

std::optional<Exit> prepare(const Order& order, const TaskDir& dir, const Site& site, std::stop_token stop) {
  if (auto made = make_directories(dir.path(), 0700); !made) return lost(made.error());
  auto log = LogWriter::open(dir.log(), dir.shipped(), TaskSpec{}.unshipped_bytes);
  if (!log) return lost(log.error());
  return Preparation(order, dir, site, std::move(*log), std::move(stop)).run();
}

}  // namespace det::agent
