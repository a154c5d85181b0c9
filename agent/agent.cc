#include "agent/agent.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/images.h"
#include "agent/master_link/messages.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/build/cache.h"
#include "common/build/precompiled.h"
#include "common/storage/work.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDefaultLease = 10min;  // until the first Welcome of the first start
constexpr Duration kCloseTimeout = 3s;     // for the orderly end of the stream

/// Seed of the reconnect jitter: agents that start together must not retry together.
std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  for (const char byte : random_bytes(8)) seed = seed << 8 | static_cast<unsigned char>(byte);
  return seed;
}

/// Converts the wall time of the settings. A time that has passed is a stop at once.
Departure departure_of(const Settings& settings) {
  Departure departure{.stop_timeout = settings.stop_timeout, .idle = settings.exit_when_idle};
  if (settings.until) departure.until = mono_now() + Duration(settings.until->micros - wall_now().micros);
  return departure;
}

/// Ends the log of an allocation with the words of Determined AI, which scripts look for.
void log_exit(const TaskDir& dir, const Exit& exit) {
  if (exit.kind == Exit::Kind::kStopped || exit.kind == Exit::Kind::kLost) return;
  // A build has run no task.
  if (exit.kind == Exit::Kind::kSucceeded && !dir.read_supervisor()) return;
  auto log = LogWriter::open(dir.log(), dir.shipped(), TaskSpec{}.unshipped_bytes);
  if (!log) return log::warn(log.error().message);
  log->append(LogStream::kAgent,
              exit.kind == Exit::Kind::kSucceeded
                  ? "INFO: resources exited successfully with a zero exit code"
                  : "ERROR: resources failed with non-zero exit code: container failed with non-zero exit "
                    "code: " +
                        std::to_string(exit.code));
}

/// The slots of a task that an earlier agent started.
std::vector<int> slots_of(const Result<TaskSpec>& spec) {
  constexpr std::string_view kName = "DET_SLOT_IDS=";
  if (!spec) return {};
  for (const std::string& variable : spec->env) {
    if (!variable.starts_with(kName)) continue;
    const auto list = parse_json(variable.substr(kName.size()));
    if (list && list->is_array()) return list->get<std::vector<int>>();
  }
  return {};
}

/// The words of the setting, or the check of this installation.
std::vector<std::string> check_command(const Settings& settings, const std::string& prefix) {
  if (settings.device_check.empty()) return {prefix + "/bin/det-harness", "--check-device", "cuda"};
  return settings.device_check;
}

std::uint64_t number_of(const std::string& text) {
  std::uint64_t mixed = 0;
  for (const char c : text) mixed = mixed * 31 + static_cast<unsigned char>(c);
  return mixed;
}

/// Returns null without a sandbox, without the training library, and for GPUs, where forks are not tested.
std::unique_ptr<WarmStart> make_warm_start(const Settings& settings, const DataDir& data,
                                           const std::vector<Device>& devices, const std::string& prefix,
                                           const SandboxReport& sandbox) {
  const std::string program = prefix + "/bin/det-fork-server";
  const bool cpus =
      !devices.empty() && std::none_of(devices.begin(), devices.end(),
                                       [](const Device& device) { return device.type == "CUDA"; });
  if (sandbox.level == SandboxReport::Level::kOff || !cpus || !path_exists(program)) return nullptr;
  // The environment of a trial on one slot.
  v1::StartAllocation order;
  order.add_slots(0);
  std::vector<std::string> refused;
  return std::make_unique<WarmStart>(program, data.path() + "/fork-server",
                                     task_environment(order,
                                                      {.devices = devices,
                                                       .cpus = cpu_count(),
                                                       .programs = prefix + "/bin",
                                                       .base = process_environment(),
                                                       .pass = settings.pass_environment},
                                                      refused));
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::create(Settings settings, const std::string& prefix) {
  // The watcher comes first: later threads must inherit the blocked signals.
  auto events = std::make_shared<Events>(65536);
  TRY_ASSIGN(auto watcher,
             Watcher::start({.ended = [events](std::uint64_t key) { events->push(ProcessEnded{key}); },
                             .stop_asked =
                                 [events, timeout = settings.stop_timeout](int signal) {
                                   events->push(Input(StopRequest{timeout, signal == SIGTERM}));
                                 }}));
  TRY_ASSIGN(std::vector<Device> devices, detect_devices(settings));
  TRY_ASSIGN(DataDir data, DataDir::open(settings.data_dir));
  TRY_ASSIGN(SandboxReport sandbox, choose_sandbox(settings, data, prefix + "/bin/det-task-init"));
  MasterLink master;
  TRY_ASSIGN(master.trust, establish_trust(settings, data.tls()));
  TRY_ASSIGN(master.channel, open_channel(settings.master, master.trust));
  // Last: from here on the agent starts.
  std::unique_ptr<Mps> mps;
  if (settings.slots_per_device > 1) {
    const bool users = sandbox.level != SandboxReport::Level::kOff && ::geteuid() == 0;
    TRY_ASSIGN(mps, Mps::start({data.path() + "/mps", devices, settings.slots_per_device, users}));
  }
  return std::unique_ptr<Agent>(new Agent(std::move(settings), std::move(data), std::move(devices), prefix,
                                          std::move(events), std::move(watcher), master, std::move(sandbox),
                                          std::move(mps)));
}

Agent::Agent(Settings settings, DataDir data, std::vector<Device> devices, const std::string& prefix,
             std::shared_ptr<Events> events, std::unique_ptr<Watcher> watcher, const MasterLink& master,
             SandboxReport sandbox, std::unique_ptr<Mps> mps)
    : settings_(std::move(settings)),
      data_(std::move(data)),
      events_(std::move(events)),
      watcher_(std::move(watcher)),
      ports_(data_.instance()),
      sandbox_(std::move(sandbox)),
      mps_(std::move(mps)),
      warm_start_(make_warm_start(settings_, data_, devices, prefix, sandbox_)),
      site_{.settings = settings_,
            .data = data_,
            .devices = std::move(devices),
            .prefix = prefix,
            .channel = master.channel,
            .trust = master.trust,
            .port_block = ports_.number(),
            .models = build::models_directory(data_.models()),
            .sandboxed = sandbox_.level != SandboxReport::Level::kOff,
            .own_network = sandbox_.own_network,
            .groups = sandbox_.groups,
            .mps_pipes = mps_ ? mps_->pipes() : "",
            .header_missing = [events = events_] { events->push(HeaderMissing{}); }},
      disk_(settings_.data_dir),
      uids_(settings_.task_uid_first, settings_.task_uid_count, number_of(data_.instance())),
      runtime_(data_, prefix + "/bin", *watcher_, warm_start_.get()),
      renewal_(site_.channel, master.trust, settings_.id),
      logs_(site_.channel, settings_.id,
            [events = events_](AllocationId id) { events->push(Input(LogsShipped{std::move(id)})); }),
      tunnels_(settings_.master, master.trust, settings_.id),
      storage_jobs_([events = events_](StorageAnswer answer) { events->push(std::move(answer)); },
                    [](const storage::Work& work) { return storage::perform(work); }),
      gpus_(site_.devices, data_.path() + "/device-faults.json", check_command(settings_, prefix),
            {.fault = [events = events_](DeviceFault fault) { events->push(Input(std::move(fault))); },
             .condition = [events = events_](DeviceCondition now) { events->push(Input(std::move(now))); },
             .checked = [events = events_](CheckDone done) { events->push(Input(std::move(done))); },
             .readings = [events = events_](std::vector<GpuReading> all) { events->push(std::move(all)); }}),
      link_(
          site_.channel, [events = events_](LinkEvent event) { events->push(std::move(event)); },
          [this] { return hello(); }, random_seed()),
      core_(data_.lease().value_or(kDefaultLease), mono_now(), departure_of(settings_)) {}

// Closing the queue releases jobs that are blocked in a push.
Agent::~Agent() { events_->close(); }

void Agent::prepare_header() {
  if (header_busy_.exchange(true)) return;
  header_job_ = std::jthread([this](const std::stop_token& stop) {
    // Each build reports an unreadable recipe.
    if (const auto recipe = build::read_recipe(site_.prefix + "/share/det/model_build.json")) {
      const auto made =
          build::make_precompiled_header(*recipe, site_.models, mono_now() + settings_.compile_timeout, stop);
      if (!made) log::warn("header not precompiled", {{"reason", made.error().message}});
    }
    header_busy_ = false;
  });
}

void Agent::run() {
  reattach_allocations();
  for (const DeviceFault& fault : gpus_.stored()) feed(fault);
  remove_copies(settings_, data_.images());
  // Artificial slots are for tests, which seldom train.
  if (settings_.artificial_slots == 0 && !site_.devices.empty()) prepare_header();
  const auto recipe = build::read_recipe(site_.prefix + "/share/det/model_build.json");
  log::info("agent started",
            {{"agent", settings_.id},
             {"training_library", recipe ? recipe->library : "none: " + recipe.error().message},
             {"master", settings_.master},
             {"slots", site_.devices.size()},
             {"type", site_.devices.empty() ? "none" : site_.devices[0].type},
             {"allocations", core_.held().size()}});
  if (recipe && recipe->library.ends_with("without CUDA") && !site_.devices.empty() &&
      site_.devices[0].type == "CUDA")
    log::warn("the slots are GPUs, but C++ trials train on the CPU: the training library has no CUDA",
              {{"library", recipe->library}, {"mend", "deploy/deps.sh --cuda, then build again"}});
  while (!done(mono_now())) {
    link_.tick(mono_now());
    if (disk_.look(mono_now())) feed(AgentProblem{disk_.problem()});
    MonoTime wake = std::min(link_.next_deadline(), disk_.next_look());
    if (const auto deadline = core_.next_deadline()) wake = std::min(wake, *deadline);
    // One wait for all sources. The core is stepped at its deadline even if no event arrives.
    if (exit_at_) wake = std::min(wake, *exit_at_);
    for (const Event& event : events_->pop_batch(256, std::max(wake - mono_now(), Duration(0)))) {
      std::visit([this](const auto& value) { take(value); }, event);
    }
    if (const auto deadline = core_.next_deadline(); deadline && mono_now() >= *deadline) feed(Tick{});
  }
  // No allocation runs any more.
  if (mps_) mps_->stop();
  log::info("agent stopped", {{"agent", settings_.id}});
}

bool Agent::done(MonoTime now) const { return exit_at_ && (link_.closed() || now >= *exit_at_); }

void Agent::reattach_allocations() {
  for (const AllocationId& id : data_.allocations()) {
    const auto dir = data_.allocation(id);
    if (!dir) continue;
    logs_.follow(id, *dir);
    const auto spec = dir->read_spec();
    if (spec && spec->sandbox && spec->sandbox->uid) uids_.keep(id, *spec->sandbox->uid);
    if (auto outcome = read_outcome(*dir)) {
      feed(Found{id, Phase::kRunning, std::nullopt, std::move(outcome), slots_of(spec)});
    } else if (const auto phase = runtime_.reattach(id)) {
      log::info("re-attached to allocation", {{"allocation", id}});
      feed(Found{id, *phase, read_stop(*dir), std::nullopt, slots_of(spec)});
    } else {
      // Cleanup happens before slots are offered: leftovers must not meet the next allocation.
      Exit exit = conclude_end(id, *dir);
      if (!dir->read_supervisor()) exit.message = "the agent stopped while it prepared the allocation";
      log::info("allocation ended while the agent was down", {{"allocation", id}, {"exit", exit.message}});
      feed(Found{id, Phase::kRunning, read_stop(*dir), std::move(exit), slots_of(spec)});
    }
  }
}

void Agent::feed(const Input& input) {
  for (const Effect& effect : core_.step(input, mono_now())) {
    std::visit([this](const auto& value) { perform(value); }, effect);
  }
}

void Agent::take(const Input& input) {
  if (const auto* request = std::get_if<StopRequest>(&input)) {
    // The first signal lets allocations end by themselves, a second one ends them.
    const std::size_t left = core_.held().size();
    log::info(left == 0 ? "agent is stopping" : "agent is stopping; a second signal ends its allocations",
              {{"allocations", left}, {"timeout", format_duration(request->timeout)}});
  }
  feed(input);
}

void Agent::take(const LinkEvent& event) {
  const MonoTime now = mono_now();
  if (const auto* read = std::get_if<LinkRead>(&event)) {
    if (const auto command = link_.handle(*read, now)) execute(*command);
  } else if (const auto* written = std::get_if<LinkWritten>(&event)) {
    link_.handle(*written);
  } else if (link_.handle(std::get<LinkClosed>(event), now)) {
    feed(Disconnected{});
  }
}

void Agent::take(const ProcessEnded& event) {
  const auto id = runtime_.ended(event.key);
  if (!id) return;
  const auto dir = data_.allocation(*id);
  if (!dir) return;
  // On a job's thread: cleaning up after a killed supervisor can take a minute.
  begin_job(*id, [this, id = *id, dir = *dir](const std::stop_token&) -> Event {
    const Exit exit = conclude_end(id, dir);
    // A fault that explains the failure reaches the master before the exit.
    const bool failed = exit.kind == Exit::Kind::kFailed || exit.kind == Exit::Kind::kHung;
    if (failed && !read_stop(dir)) gpus_.settle();
    return Input(Ended{id, exit});
  });
}

void Agent::execute(const v1::AgentCommand& command) {
  // Every message renews the lease, a heartbeat too.
  feed(MessageReceived{});
  switch (command.command_case()) {
    case v1::AgentCommand::kWelcome: {
      const v1::Welcome& welcome = command.welcome();
      cluster_id_ = welcome.cluster_id();
      grace_ = std::chrono::seconds(welcome.kill_grace_seconds());
      log::info("connected to the master",
                {{"master", settings_.master}, {"version", welcome.master_version()}});
      const std::chrono::seconds lease(welcome.lease_seconds());
      if (const Status stored = data_.store_lease(lease); !stored) log::warn(stored.error().message);
      return feed(Connected{lease, grace_});
    }
    case v1::AgentCommand::kStart:
      return start(command.start());
    case v1::AgentCommand::kKill:
      return feed(Kill{AllocationId(command.kill().allocation_id())});
    case v1::AgentCommand::kForget:
      return feed(Forget{AllocationId(command.forget().allocation_id())});
    case v1::AgentCommand::kStorageWork:
      return work(command.storage_work());
    case v1::AgentCommand::kOpenTunnel:
      return open_tunnel(command.open_tunnel());
    case v1::AgentCommand::kCheckSlot: {
      const int slot = command.check_slot().slot();
      if (slot >= 0 && slot < static_cast<int>(site_.devices.size()) && gpus_.active())
        feed(CheckRequest{slot, command.check_slot().number()});
      return;
    }
    case v1::AgentCommand::kHeartbeat:
    case v1::AgentCommand::COMMAND_NOT_SET:
      return;
  }
}

void Agent::start(const v1::StartAllocation& command) {
  const AllocationId id(command.allocation_id());
  // An id that is no file name must not reach the file system.
  if (auto dir = data_.allocation(id); !dir) return log::error(dir.error().message);
  auto order = std::make_shared<Order>(Order{command, cluster_id_, grace_});
  if (site_.sandboxed && ::geteuid() == 0) order->uid = uids_.take(id);
  feed(Start{id, std::move(order), {command.slots().begin(), command.slots().end()}});
}

void Agent::work(const v1::StorageWork& command) {
  const Status started = storage_jobs_.start(command, link_.session());
  if (started) return;
  v1::AgentMessage message;
  message.mutable_storage_done()->set_number(command.number());
  message.mutable_storage_done()->set_error(started.error().message);
  link_.send(std::move(message));
}

void Agent::open_tunnel(const v1::OpenTunnel& command) {
  const auto dir = data_.allocation(AllocationId(command.allocation_id()));
  const auto spec = dir ? dir->read_spec() : Result<TaskSpec>(tl::unexpected(dir.error()));
  if (!spec) return tunnels_.refuse(command, "the task has no process on agent " + settings_.id);
  // A task without a user of its own runs as the agent.
  std::optional<uid_t> uid = spec->sandbox && spec->sandbox->uid ? *spec->sandbox->uid : ::geteuid();
  if (spec->sandbox && spec->sandbox->own_network) uid.reset();
  tunnels_.open(command, uid, *dir);
}

void Agent::take(const StorageAnswer& answer) {
  storage_jobs_.ended();
  if (!answer.done.removed().empty())
    log::info("removed checkpoints", {{"count", answer.done.removed_size()}});
  // A master that has connected since may have given the number to another command.
  if (answer.session != link_.session()) return;
  v1::AgentMessage message;
  *message.mutable_storage_done() = answer.done;
  link_.send(std::move(message));
}

void Agent::take(const std::vector<GpuReading>& readings) {
  v1::AgentMessage message;
  *message.mutable_readings() = readings_of(readings);
  link_.send(std::move(message));
}

v1::Hello Agent::hello() const {
  v1::Hello hello;
  hello.set_agent_id(settings_.id);
  hello.set_instance(data_.instance());
  hello.set_version(DET_VERSION);
  hello.set_pool(settings_.pool);
  hello.set_ephemeral(settings_.ephemeral);
  hello.set_sandbox(to_string(sandbox_.level));
  hello.set_sandbox_missing(sandbox_.missing);
  hello.set_problem(core_.problem());
  hello.set_checks_slots(gpus_.active());
  // Without the boot id, the master accepts any order.
  if (const auto boot = read_file("/proc/sys/kernel/random/boot_id"))
    hello.set_boot(std::string(trim(*boot)));
  // The monotonic clock goes on over restarts of the agent within a boot.
  hello.set_connection(mono_now().micros);
  add_problems(core_.slot_health(), hello.mutable_slot_problems());
  add_devices(site_.devices, hello);
  for (const Held& held : core_.held()) *hello.add_held() = update_of(held.id, held.phase, held.exit);
  return hello;
}

void Agent::begin_job(const AllocationId& id, std::function<Event(std::stop_token)> work) {
  jobs_[id] = std::jthread([work = std::move(work), events = events_](std::stop_token stop) {
    events->push(work(std::move(stop)));
  });
}

void Agent::perform(const Prepare& effect) {
  const auto dir = data_.allocation(effect.id);
  // start() has rejected invalid ids.
  if (!dir) return;
  log::info("preparing allocation", {{"allocation", effect.id}});
  logs_.follow(effect.id, *dir);
  // It loads its libraries while the trial is compiled. Errors are reported when the trial is launched.
  if (warm_start_ && effect.order->message.trial_id() != 0) (void)warm_start_->start();
  begin_job(effect.id,
            [this, id = effect.id, order = effect.order, dir = *dir](std::stop_token stop) -> Event {
              return Input(Prepared{id, prepare(*order, dir, site_, std::move(stop))});
            });
}

void Agent::perform(const CancelPreparation& effect) {
  if (const auto it = jobs_.find(effect.id); it != jobs_.end()) it->second.request_stop();
}

void Agent::perform(const Launch& effect) {
  // The answers go through the queue: the core must not be stepped while it is being stepped.
  const auto phase = runtime_.launch(effect.id);
  if (phase) {
    log::info("launched allocation", {{"allocation", effect.id}});
    events_->push(Input(Launched{effect.id, *phase}));
  } else {
    log::error("allocation could not be launched",
               {{"allocation", effect.id}, {"reason", phase.error().message}});
    events_->push(Input(Ended{effect.id, {Exit::Kind::kLost, 0, phase.error().message}}));
  }
}

void Agent::perform(const Conclude& effect) {
  log::info("allocation ended", {{"allocation", effect.id}, {"exit", effect.exit.message}});
  if (const auto dir = data_.allocation(effect.id)) {
    // An earlier agent process that stored the exit has logged it.
    if (!read_outcome(*dir)) log_exit(*dir, effect.exit);
    // Stored before the log is finished, so that a later agent process does not repeat the conclusion.
    if (auto written = write_outcome(*dir, effect.exit); !written) log::warn(written.error().message);
  }
  logs_.finish(effect.id);
}

void Agent::perform(const Report& effect) {
  v1::AgentMessage message;
  *message.mutable_update() = update_of(effect.id, effect.phase, effect.exit);
  link_.send(std::move(message));
}

void Agent::perform(const Drop& effect) {
  logs_.forget(effect.id);
  const auto dir = data_.allocation(effect.id);
  if (!dir) return;
  begin_job(effect.id, [id = effect.id, dir = *dir](const std::stop_token&) -> Event {
    if (const auto spec = dir.read_spec()) remove_group(spec->groups);
    if (auto removed = remove_tree(dir.path()); !removed) log::warn(removed.error().message);
    return Removed{id};
  });
}

void Agent::perform(const ReportSlots&) {
  gpus_.store(core_.slot_health().reasons());
  v1::AgentMessage message;
  add_problems(core_.slot_health(), message.mutable_slot_problems()->mutable_problems());
  message.mutable_slot_problems()->set_checks(core_.check_number());
  link_.send(std::move(message));
}

void Agent::perform(const ReportProblem&) {
  v1::AgentMessage message;
  message.mutable_problem()->set_problem(core_.problem());
  link_.send(std::move(message));
}

void Agent::perform(const Announce&) {
  log::info("the master moves the allocations to other agents", {{"allocations", core_.held().size()}});
  v1::AgentMessage message;
  message.mutable_stopping();
  link_.send(std::move(message));
}

void Agent::perform(const Finish&) {
  std::optional<v1::AgentMessage> last;
  if (settings_.ephemeral) last.emplace().mutable_left();
  exit_at_ = mono_now() + kCloseTimeout;
  link_.close(std::move(last));
}

}  // namespace det::agent
