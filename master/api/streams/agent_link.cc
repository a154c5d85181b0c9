// State machine of one agent's link. Runs on the edge worker:
//
//   opened --Hello accepted by the core--> live --end of stream, silence, shutdown--> finished
#include "master/api/streams/agent_link.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/text.h"
#include "det/v1/agent.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/streams/bidi_stream.h"

namespace det::api {
namespace {

constexpr int kMissedHeartbeats = 3;
// Interval between two certificate checks of a live link.
constexpr Duration kLinkScanInterval = std::chrono::seconds(5);
constexpr std::size_t kMaxDevices = 1024;
constexpr std::size_t kMaxSandboxText = 1000;  // bytes

Status check_hello(const v1::Hello& hello) {
  if (!is_agent_name(hello.agent_id(), 128)) {
    return fail(Code::kInvalidArgument, "agent_id: 1 to 128 characters, no control characters");
  }
  if (!is_agent_name(hello.instance(), 128))
    return fail(Code::kInvalidArgument, "instance: 1 to 128 characters");
  if (hello.boot().size() > 128) return fail(Code::kInvalidArgument, "boot: at most 128 characters");
  if (!hello.pool().empty() && !is_agent_name(hello.pool(), 128)) {
    return fail(Code::kInvalidArgument, "pool: at most 128 characters, no control characters");
  }
  if (static_cast<std::size_t>(hello.devices_size()) > kMaxDevices) {
    return fail(Code::kInvalidArgument, "more than 1024 devices");
  }
  return {};
}

storage::Done to_done(const v1::StorageDone& message) {
  storage::Done done{.removed = {message.removed().begin(), message.removed().end()},
                     .absent = {message.absent().begin(), message.absent().end()},
                     .found = {},
                     .error = message.error()};
  for (const v1::StoredCheckpoint& each : message.found())
    done.found.push_back({each.name(), {each.cluster_id(), TrialId(each.trial_id()), each.run()}});
  return done;
}

/// Reasons by slot id, as text of bounded size.
std::map<int, std::string> texts_of(const google::protobuf::Map<std::int32_t, std::string>& problems) {
  std::map<int, std::string> texts;
  for (const auto& [slot, problem] : problems) {
    if (slot >= 0 && static_cast<std::size_t>(slot) < kMaxDevices)
      texts[slot] = make_utf8(problem.substr(0, kMaxSandboxText));
  }
  return texts;
}

int seconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

bool is_agent_name(const std::string& text, std::size_t longest) {
  return !text.empty() && text.size() <= longest && !has_control_characters(text) && !find_bad_utf8(text);
}

TaskId task_of(const AllocationId& id) { return TaskId(id.value.substr(0, id.value.rfind('.'))); }

/// Link of one agent. Commands wait until Welcome has been sent.
class AgentLink final : public BidiStream<v1::AgentMessage, v1::AgentCommand>,
                        public std::enable_shared_from_this<AgentLink> {
 public:
  AgentLink(AgentService& service, AgentPeer peer)
      : BidiStream(service.context_.edge),
        service_(service),
        context_(service.context_),
        peer_(std::move(peer)),
        heard_(mono_now()) {}

  const AgentId& agent() const { return agent_; }
  /// True once the core has accepted the session.
  bool live() const { return live_; }

  /// Closes the link if its certificate or token has been revoked or has expired. The lookup runs on a
  /// worker.
  void check_certificate() {
    if (finished()) return;
    context_.pools.steer.try_post([self = shared_from_this()] {
      const auto caller = authorize_agent(self->peer_, self->context_.pool);
      // Only a definite refusal ends the link; a database outage must not disconnect agents.
      if (caller || caller.error().code != Code::kPermissionDenied) return;
      self->on_edge([self, error = caller.error()] { self->refuse(error); });
    });
  }

  void check_silence(MonoTime now) {
    if (!live_ || now - heard_ <= context_.settings.heartbeat * kMissedHeartbeats) return;
    finish(to_grpc(Error{Code::kDeadlineExceeded, "no heartbeat for too long", {}}));
  }

 private:
  /// Notifies the core if it has accepted the session.
  void ended(const grpc::Status& status) override {
    if (session_ == 0) return;
    service_.links_.erase(session_);
    service_.storage_calls_.expire(session_);
    // A newer link of the agent brings its own readings.
    context_.readings->remove(agent_);
    if (live_) log::info("agent disconnected", {{"agent", agent_}, {"reason", status.error_message()}});
    context_.loop.submit(core::AgentDisconnected{agent_, session_});
    publish();
  }

  void publish() { context_.hub.publish({.kind = loop::Change::Kind::kAgent, .name = agent_.value}); }

  void received(const v1::AgentMessage& message) override {
    heard_ = mono_now();
    switch (message.message_case()) {
      case v1::AgentMessage::kHello:
        if (std::exchange(hello_seen_, true))
          return refuse({Code::kInvalidArgument, "a link has one hello", {}});
        // The next read starts after the core has accepted the agent: no update precedes the Welcome.
        return hello(message.hello());
      case v1::AgentMessage::kHeartbeat: {
        v1::AgentCommand command;
        command.mutable_heartbeat();
        send(std::move(command));
        break;
      }
      case v1::AgentMessage::kUpdate:
        update(message.update());
        break;
      case v1::AgentMessage::kProblem:
        problem(message.problem());
        break;
      case v1::AgentMessage::kSlotProblems:
        slot_problems(message.slot_problems());
        break;
      case v1::AgentMessage::kReadings:
        readings(message.readings());
        break;
      case v1::AgentMessage::kStopping:
        if (!live_) break;
        log::info("agent is stopping", {{"agent", agent_}});
        context_.loop.submit(core::AgentStopping{agent_, session_});
        publish();
        break;
      case v1::AgentMessage::kLeft:
        if (!live_) break;
        log::info("agent has left", {{"agent", agent_}});
        context_.loop.submit(core::AgentLeft{agent_, session_});
        break;
      case v1::AgentMessage::kStorageDone:
        service_.storage_calls_.complete(session_, message.storage_done().number(),
                                         to_done(message.storage_done()));
        break;
      case v1::AgentMessage::MESSAGE_NOT_SET:
        break;  // sent by a newer agent
    }
    if (!live_) return refuse({Code::kInvalidArgument, "a link begins with hello", {}});
    if (!finished()) read_next();
  }

  Status authenticate() override {
    TRY_ASSIGN(caller_, authorize_agent(peer_, context_.pool));
    return {};
  }

  /// Returns the pool of an agent. The pool of the join token is binding; an agent may not choose another.
  Result<std::string> pool_of(const v1::Hello& hello) const {
    if (caller_.pool.empty()) return hello.pool().empty() ? context_.settings.default_pool : hello.pool();
    if (hello.pool().empty() || hello.pool() == caller_.pool) return caller_.pool;
    return fail(Code::kPermissionDenied, "this agent joined the resource pool " + caller_.pool);
  }

  void hello(const v1::Hello& hello) {
    if (auto named = caller_.check_name(hello.agent_id()); !named) return refuse(named.error());
    const auto pool = pool_of(hello);
    if (!pool) return refuse(pool.error());
    if (auto checked = check_hello(hello); !checked) return refuse(checked.error());
    if (service_.closed_) return refuse(shutting_down());
    core::AgentConnected input{.agent = AgentId(hello.agent_id()),
                               .instance = hello.instance(),
                               .version = make_utf8(hello.version()),
                               .address = peer_.address,
                               .pool = *pool};
    input.ephemeral = hello.ephemeral();
    for (const v1::AgentDevice& device : hello.devices()) {
      input.slots.push_back({make_utf8(device.type()), make_utf8(device.brand()), make_utf8(device.uuid()),
                             device.link_group()});
    }
    for (const v1::AllocationUpdate& update : hello.held()) {
      auto held = from_proto(update);
      if (!held) return refuse(held.error());
      input.held.push_back(std::move(*held));
    }
    input.sandbox = make_utf8(hello.sandbox().substr(0, kMaxSandboxText));
    input.sandbox_missing = make_utf8(hello.sandbox_missing().substr(0, kMaxSandboxText));
    input.problem = make_utf8(hello.problem().substr(0, kMaxSandboxText));
    input.slot_problems = texts_of(hello.slot_problems());
    input.checks_slots = hello.checks_slots();
    input.boot = make_utf8(hello.boot());
    input.connection = hello.connection();
    agent_ = input.agent;
    session_ = service_.next_session_++;
    input.session = session_;
    // Registered before the core handles the Hello: the core may send commands right after its reply.
    service_.links_[session_] = weak_from_this();
    // Read before `input` is moved away.
    const std::size_t slots = input.slots.size();
    context_.loop.call(std::move(input), [self = shared_from_this(), slots](loop::Answer answer) {
      self->on_edge([self, slots, answer = std::move(answer)] { self->welcomed(answer, slots); });
    });
  }

  void welcomed(const loop::Answer& answer, std::size_t slots) {
    if (finished()) return;
    if (!answer) {
      log::warn("agent rejected", {{"agent", agent_}, {"reason", answer.error().message}});
      // Session 0 keeps ended() from reporting a disconnect of a session that the core refused.
      service_.links_.erase(session_);
      session_ = 0;
      return refuse(answer.error());
    }
    live_ = true;
    heard_ = mono_now();
    log::info("agent connected", {{"agent", agent_}, {"address", peer_.address}, {"slots", slots}});
    publish();
    v1::AgentCommand command;
    v1::Welcome* welcome = command.mutable_welcome();
    welcome->set_heartbeat_seconds(std::max(1, seconds(context_.settings.heartbeat)));
    welcome->set_lease_seconds(seconds(context_.settings.agent_lease));
    welcome->set_kill_grace_seconds(seconds(context_.settings.agent_kill_grace));
    welcome->set_cluster_id(context_.settings.cluster_id);
    welcome->set_master_version(context_.settings.version);
    // The core may already have queued commands; Welcome goes in front of them.
    open(std::move(command));
    read_next();
  }

  void update(const v1::AllocationUpdate& message) {
    if (!live_) return;
    auto held = from_proto(message);
    if (!held) return refuse(held.error());
    context_.loop.submit(core::AllocationUpdated{agent_, session_, std::move(*held)});
  }

  void problem(const v1::AgentProblem& message) {
    if (!live_) return;
    const std::string problem = make_utf8(message.problem().substr(0, kMaxSandboxText));
    if (problem.empty()) {
      log::info("agent takes work again", {{"agent", agent_}});
    } else {
      log::warn("agent takes no new work", {{"agent", agent_}, {"reason", problem}});
    }
    context_.loop.submit(core::AgentProblem{agent_, session_, problem});
    publish();
  }

  void slot_problems(const v1::SlotProblems& message) {
    if (!live_) return;
    auto problems = texts_of(message.problems());
    for (const auto& [slot, problem] : problems)
      log::warn("slot out of service", {{"agent", agent_}, {"slot", slot}, {"reason", problem}});
    if (problems.empty()) log::info("all slots of the agent are in service", {{"agent", agent_}});
    context_.loop.submit(core::SlotProblems{agent_, session_, std::move(problems), message.checks()});
    publish();
  }

  void readings(const v1::DeviceReadings& message) {
    if (!live_ || static_cast<std::size_t>(message.readings_size()) > kMaxDevices) return;
    // A page that shows them loads all agents at each change.
    if (context_.readings->put(agent_, {message.readings().begin(), message.readings().end()}, mono_now()))
      publish();
  }

  void refuse(const Error& error) { finish(to_grpc(error)); }

  AgentService& service_;
  const Context& context_;
  const AgentPeer peer_;
  AgentCaller caller_;  ///< set by authenticate()
  bool live_ = false, hello_seen_ = false;
  AgentId agent_;
  std::uint64_t session_ = 0;
  // Time of the last message.
  MonoTime heard_;
};

AgentService::AgentService(const Context& context)
    : Service(context, v1::AgentService::full_name),
      tunnels_(context, [this](const AgentId& agent, const v1::OpenTunnel& order) {
        const auto link = link_of(agent).second;
        if (!link) return false;
        v1::AgentCommand command;
        *command.mutable_open_tunnel() = order;
        link->send(std::move(command));
        return true;
      }) {
  bidi_stream(v1::AgentService::Tunnel, &AgentService::Tunnel);
  bidi_stream(v1::AgentService::Link, &AgentService::Link);
  server_stream(v1::AgentService::GetContext, &AgentService::GetContext);
  deferred(v1::AgentService::ShipLogs, &AgentService::ShipLogs);
}

grpc::ServerBidiReactor<v1::AgentMessage, v1::AgentCommand>* AgentService::Link(
    grpc::CallbackServerContext* call) {
  AgentPeer peer = peer_of(*call);
  if (auto possible = may_be_agent(peer); !possible)
    return new RefusedStream<v1::AgentMessage, v1::AgentCommand>(possible.error());
  auto link = std::make_shared<AgentLink>(*this, std::move(peer));
  link->start(link, context_.pools.steer);
  return link.get();
}

Tunnels::Reactor* AgentService::Tunnel(grpc::CallbackServerContext* call) { return tunnels_.accept(call); }

void AgentService::send(const AgentId& agent, std::uint64_t session, v1::AgentCommand command) {
  context_.edge.post([this, agent, session, command = std::move(command)] {
    // The session, not only the agent, is compared: commands of an older session are obsolete.
    auto it = links_.find(session);
    if (it == links_.end()) return;
    if (auto link = it->second.lock(); link && link->agent() == agent) link->send(command);
  });
}

/// The startup hook of a pool: its own, else the master's.
static const std::string& startup_hook(const Settings& settings, const std::string& pool) {
  const auto own = settings.pool_task_defaults.find(pool);
  const bool replaced = own != settings.pool_task_defaults.end() && !own->second.startup_hook.empty();
  return replaced ? own->second.startup_hook : settings.task_defaults.startup_hook;
}

void AgentService::start(const core::StartAllocation& command) {
  v1::AgentCommand message;
  to_proto(command, message.mutable_start());
  if (context_.settings.task_user_tokens)
    message.mutable_start()->set_user_token(task_user_token(command.allocation.id, command.token));
  message.mutable_start()->set_startup_hook(startup_hook(context_.settings, command.allocation.pool));
  const auto storages = context_.storages->get();
  if (command.config && !storages->named.empty()) {
    // Keys of storages are added here, so that no stored configuration has them.
    Json config = command.config->resolved;
    Json& storage = config["checkpoint_storage"];
    storage = storages->for_process(std::move(storage));
    message.mutable_start()->set_experiment_config(dump_json(config));
  }
  send(command.agent, command.session, std::move(message));
}

void AgentService::kill(core::KillAllocation command) {
  v1::AgentCommand message;
  message.mutable_kill()->set_allocation_id(command.allocation.value);
  send(command.agent, command.session, std::move(message));
}

void AgentService::check(const core::CheckSlot& command) {
  v1::AgentCommand message;
  message.mutable_check_slot()->set_slot(command.slot);
  message.mutable_check_slot()->set_number(command.number);
  send(command.agent, command.session, std::move(message));
}

void AgentService::forget(core::AllocationForgotten command) {
  v1::AgentCommand message;
  message.mutable_forget()->set_allocation_id(command.allocation.value);
  send(command.agent, command.session, std::move(message));
}

std::pair<std::uint64_t, std::shared_ptr<AgentLink>> AgentService::link_of(const AgentId& agent) const {
  // After a silent reconnect the older link is still open for up to three heartbeats.
  for (auto at = links_.rbegin(); at != links_.rend(); ++at) {
    auto link = at->second.lock();
    if (link && link->live() && link->agent() == agent) return {at->first, std::move(link)};
  }
  return {};
}

Result<storage::Done> AgentService::ask(const AgentId& agent, const storage::Work& work) {
  constexpr auto kTimeout = std::chrono::seconds(60);
  return storage_calls_.call(
      [this, agent, work](std::int64_t number) {
        const auto [session, link] = link_of(agent);
        if (!link) return session;
        v1::AgentCommand command;
        v1::StorageWork* order = command.mutable_storage_work();
        order->set_number(number);
        order->set_root(work.root.base);
        order->set_below(work.root.below);
        order->mutable_remove()->Assign(work.remove.begin(), work.remove.end());
        order->set_list(work.list);
        link->send(std::move(command));
        return session;
      },
      kTimeout);
}

std::vector<AgentId> AgentService::connected() {
  const auto agents = std::make_shared<std::promise<std::vector<AgentId>>>();
  auto list = agents->get_future();
  const bool posted = context_.edge.post([this, agents] {
    std::vector<AgentId> found;
    for (const auto& [session, weak] : links_)
      if (const auto link = weak.lock()) found.push_back(link->agent());
    agents->set_value(std::move(found));
  });
  if (!posted || list.wait_for(std::chrono::seconds(10)) != std::future_status::ready) return {};
  return list.get();
}

void AgentService::tick() {
  const MonoTime now = mono_now();
  const std::uint64_t rights = context_.sessions->generation();
  const bool check = rights != rights_ || now >= next_check_;
  if (check) {
    rights_ = rights;
    next_check_ = now + kLinkScanInterval;
  }
  // A copy, because finish() erases from links_.
  const auto links = links_;
  for (const auto& [session, weak] : links) {
    auto link = weak.lock();
    if (!link) continue;
    link->check_silence(now);
    if (check) link->check_certificate();
  }
  tunnels_.tick(now);
}

void AgentService::close() {
  closed_ = true;
  tunnels_.close();
  // A copy, as in tick().
  const auto links = links_;
  for (const auto& [session, weak] : links) {
    if (auto link = weak.lock()) link->finish(to_grpc(shutting_down()));
  }
}

}  // namespace det::api
