// The two ends of a tunnel (a port, a shell or an SSH server):
//
//   caller: target --authorized, ordered--> waiting --agent's answer--> paired --end of either call-->
//   finished agent:  answer --authenticated--> paired --end of either call--> finished
#include "master/api/streams/tunnels.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/crypto/ssh_key.h"
#include "master/api/auth/agent_auth.h"
#include "master/api/context.h"
#include "master/api/streams/bidi_stream.h"
#include "master/db/queries/commands.h"

namespace det::api {
namespace {

constexpr const char* kConnectMethod = "/det.v1.TaskService/Connect";
constexpr const char* kConnectSshMethod = "/det.v1.TaskService/ConnectSsh";
constexpr std::size_t kMaxTunnelData = 64 << 10;
constexpr std::size_t kMaxTunnelError = 1000;  // bytes

/// Destination of a tunnel.
struct Destination {
  AgentId agent;
  AllocationId allocation;
  v1::TunnelOpened port;
  std::string ssh_key;  ///< public key of a shell whose SSH server is the destination; "" for others
};

/// What the core knows of a task.
struct Running {
  bool known = false;
  std::optional<core::AllocationState> state;  ///< of its current allocation
  AllocationId allocation;
  AgentId agent;  ///< of the first part
  Json ports = Json::array();
};

/// Runs on the core's thread.
void look_up(const core::Core& core, const TaskId& task, TaskKey key, Running& out) {
  RunNumber run = 1;
  const Json* config = nullptr;
  if (const core::Command* command = core.command(key)) {
    config = &command->config->resolved;
    run = command->run;
  } else if (const core::Trial* trial = core.trial(key)) {
    config = &core.experiments().at(trial->experiment).config->resolved;
    run = trial->run;
  }
  if (config == nullptr) return;
  out.known = true;
  out.ports = config->at("environment").at("proxy_ports");
  out.allocation = AllocationId(task.value + "." + std::to_string(run));
  const auto found = core.allocations().find(out.allocation);
  if (found == core.allocations().end()) return;
  out.state = found->second.state;
  out.agent = found->second.parts.front().agent;
}

/// Returns the element of `proxy_ports` for `port`; 0 selects the default one, or the only one.
Result<Json> select_port(const Json& ports, int port, const std::string& task) {
  std::vector<std::string> declared;
  const Json* found = nullptr;
  for (const Json& each : ports) {
    declared.push_back(each.at("proxy_port").dump());
    const bool named = port != 0 && each.at("proxy_port") == port;
    if (named || (port == 0 && (ports.size() == 1 || each.value("default_service_id", false)))) found = &each;
  }
  if (found != nullptr) return *found;
  if (declared.empty())
    return fail(Code::kNotFound, "task " + task + " has no port; name it in environment.proxy_ports");
  if (port == 0)
    return fail(Code::kNotFound,
                "task " + task + " has several ports; choose one of " + join(declared, ", "));
  return fail(Code::kNotFound, "port " + std::to_string(port) +
                                   " is not one of environment.proxy_ports of task " + task + ": " +
                                   join(declared, ", "));
}

/// Returns the public key of a shell; "" for tasks without one. Blocks on the database.
Result<std::string> ssh_key_of(const Context& context, const TaskId& task) {
  if (!context.settings.shell_ssh) return "";
  TRY_ASSIGN(const std::string key, db::find_ssh_key(context.pool, task));
  return key.empty() ? key : ssh_public_key(key);
}

/// Blocks on the database and the core.
Result<Destination> destination_of(const Context& context, const v1::TunnelTarget& target) {
  const TaskId task(target.task_id());
  TRY_ASSIGN(const db::TaskFacts facts, db::get_task(context.pool, task));
  const auto running = std::make_shared<Running>();
  if (!facts.ended) {
    TRY(context.loop.inspect(
        [running, task, key = facts.key](const core::Core& core) { look_up(core, task, key, *running); }));
  }
  if (!running->known) return fail(Code::kFailedPrecondition, "task " + task.value + " has ended");
  Json port;
  std::string ssh_key;
  if (!target.has_shell() && target.port() == 0) {
    TRY_ASSIGN(ssh_key, ssh_key_of(context, task));
  }
  const bool ssh = !ssh_key.empty();
  if (!target.has_shell() && !ssh) {
    TRY_ASSIGN(port, select_port(running->ports, target.port(), task.value));
  }
  using State = core::AllocationState;
  if (!running->state || *running->state < State::kStarting)
    return fail(Code::kUnavailable, "task " + task.value + " has not started yet; try again in a moment");
  if (*running->state > State::kRunning)
    return fail(Code::kFailedPrecondition, "task " + task.value + " is ending");
  Destination destination{running->agent, running->allocation, {}, std::move(ssh_key)};
  destination.port.set_tcp(ssh);
  if (target.has_shell() || ssh) return destination;
  destination.port.set_port(port.at("proxy_port").get<int>());
  destination.port.set_tcp(port.value("proxy_tcp", false));
  destination.port.set_strip_prefix(port.value("strip_prefix", false));
  return destination;
}

}  // namespace

/// One end of a tunnel.
class TunnelEnd : public BidiStream<v1::TunnelMessage, v1::TunnelMessage>,
                  public std::enable_shared_from_this<TunnelEnd> {
 public:
  TunnelEnd(loop::Workers& edge, grpc::CallbackServerContext* call) : BidiStream(edge), call_(call) {}

  void OnCancel() override {
    on_edge([self = shared_from_this()] { self->finish(grpc::Status::CANCELLED); });
  }
  /// Sends TunnelOpened and begins to pass data to `peer`.
  void pair(std::shared_ptr<TunnelEnd> peer, const v1::TunnelOpened& opened) {
    peer_ = std::move(peer);
    heard_ = mono_now();
    v1::TunnelMessage message;
    *message.mutable_opened() = opened;
    open(std::move(message));
    read_more();
  }
  /// Time of the last message; unset before the tunnel is paired.
  std::optional<MonoTime> heard() const { return heard_; }
  void refuse(const Error& error) { finish(to_grpc(error)); }
  /// Like refuse(), also when the remote side does not read what is being written.
  void abort(const grpc::Status& status) {
    if (finished()) return;
    call_->TryCancel();
    finish(status);
  }

 protected:
  bool paired() const { return heard_.has_value(); }
  /// Passes a message to the other end. The next one is read when it has been written there.
  void relay(const v1::TunnelMessage& message) {
    reading_ = false;
    heard_ = mono_now();
    const bool known = message.has_end() || message.has_size() || message.has_exit() || message.has_data();
    if (!known || message.data().size() > kMaxTunnelData)
      return refuse({Code::kInvalidArgument, "a tunnel carries data of at most 64 KiB, and ends", {}});
    if (peer_) peer_->send(message);
  }
  void drained() override {
    if (peer_) peer_->read_more();
  }
  /// Closes the other end too.
  void ended(const grpc::Status& status) override {
    const auto peer = std::exchange(peer_, nullptr);
    if (!peer) return;
    status.ok() ? peer->finish(status) : peer->abort(status);
  }

 private:
  void read_more() {
    if (!finished() && !std::exchange(reading_, true)) read_next();
  }

  grpc::CallbackServerContext* const call_;  ///< valid until the stream has finished
  std::shared_ptr<TunnelEnd> peer_;
  std::optional<MonoTime> heard_;
  bool reading_ = false;  ///< a read of a paired end is in flight
};

/// The end of a user.
class CallerEnd final : public TunnelEnd {
 public:
  /// `method`: kConnectMethod, or kConnectSshMethod for a caller without a login.
  CallerEnd(Tunnels& tunnels, grpc::CallbackServerContext* call, const char* method)
      : TunnelEnd(tunnels.context_.edge, call),
        tunnels_(tunnels),
        context_(tunnels.context_),
        method_(method),
        credentials_(read_credentials(*call)),
        created_(mono_now()) {}

  /// Closes the tunnel after its idle time, or when no agent has answered.
  void check_time(MonoTime now, std::optional<MonoTime> peer_heard) {
    if (paired() && !is_logging_in(now)) touch(std::max(*heard(), peer_heard.value_or(*heard())));
    if (!paired() && now - created_ > kTunnelAnswerTime)
      return refuse(unreachable("agent " + destination_.agent.value +
                                " did not open a tunnel; is it of an older release?"));
    if (paired() && now - std::max(*heard(), peer_heard.value_or(*heard())) > kTunnelIdleTime)
      abort(to_grpc(Error{Code::kDeadlineExceeded, "the tunnel was idle for 10 minutes", {}}));
  }
  const Destination& destination() const { return destination_; }
  /// Whether the caller may not have logged in to the SSH server yet.
  bool is_logging_in(MonoTime now) const {
    return !destination_.ssh_key.empty() && now - created_ < kSshLoginTime;
  }
  /// Error of a destination that cannot be reached. A caller without a login learns no details.
  Error unreachable(const std::string& why) const {
    return {Code::kUnavailable, is_anonymous() ? "the shell cannot be reached now" : why, {}};
  }
  std::optional<MonoTime> agent_heard() const { return agent_ ? agent_->heard() : std::nullopt; }

  /// Connects both ends, after the agent has connected to the port.
  void join(const std::shared_ptr<TunnelEnd>& agent) {
    agent_ = agent;
    if (!is_logging_in(mono_now())) touch(mono_now());
    if (!is_anonymous()) watch_rights();
    agent->pair(shared_from_this(), destination_.port);
    pair(agent, destination_.port);
  }

 private:
  bool is_anonymous() const { return method_ != kConnectMethod; }

  /// Ends the tunnel with the right to it.
  void watch_rights() {
    stream_ = context_.streams->open(
        kConnectMethod, credentials_, request_,
        [weak = std::weak_ptr<TunnelEnd>(shared_from_this()), &edge = context_.edge](const Error&) {
          edge.post([weak] {
            if (const auto self = weak.lock())
              self->abort(to_grpc(Error{Code::kUnauthenticated, "the right to use this task has ended", {}}));
          });
        });
  }

  /// The task is in use.
  void touch(MonoTime when) { context_.idle_tasks->touch(request_->target().task_id(), when); }

  void received(const v1::TunnelMessage& message) override {
    if (paired()) return relay(message);
    request_ = std::make_shared<const v1::TunnelMessage>(message);
    const auto self = std::static_pointer_cast<CallerEnd>(shared_from_this());
    // The next read starts when the tunnel is open.
    if (!context_.pools.read.try_post([self] { self->resolve(); })) refuse(busy());
  }

  Status authenticate() override {
    TRY_ASSIGN(caller_, api::authenticate(method_, credentials_, *context_.sessions));
    return {};
  }

  /// Authorizes the caller and finds the task. Runs on a worker.
  void resolve() {
    std::shared_ptr<loop::Budget::Lease> lease;
    auto found = [this, &lease]() -> Result<Destination> {
      if (!request_->has_target()) return fail(Code::kInvalidArgument, "a connection begins with one target");
      TRY(check_rules(method_, caller_, request_.get(), context_.pool));
      const TaskId task(request_->target().task_id());
      if (is_anonymous()) TRY(check_shell(task));
      auto taken = tunnels_.budget_.take(is_anonymous() ? "ssh " + task.value : budget_owner(caller_), 1);
      if (!taken)
        return fail(Code::kResourceExhausted, "at most " + std::to_string(kTunnelsPerCaller) +
                                                  " tunnels of one user at once; close one");
      lease = std::make_shared<loop::Budget::Lease>(std::move(*taken));
      auto destination = destination_of(context_, request_->target());
      // The state of a task is not for callers without a login.
      if (!destination && is_anonymous()) return not_logged_in();
      return destination;
    }();
    on_edge(
        [self = std::static_pointer_cast<CallerEnd>(shared_from_this()), found = std::move(found), lease] {
          if (self->finished()) return;
          self->lease_ = lease;
          found ? self->order(*found) : self->refuse(found.error());
        });
  }

  /// Checks that a caller without a login names a shell with a key, and nothing else.
  Status check_shell(const TaskId& task) {
    auto taken = tunnels_.lookups_.take("", 1);
    if (!taken) return tl::unexpected(busy());
    const auto key = ssh_key_of(context_, task);
    const v1::TunnelTarget& target = request_->target();
    return !key || key->empty() || target.has_shell() || target.port() != 0 ? not_logged_in() : Status();
  }
  static tl::unexpected<Error> not_logged_in() { return fail(Code::kUnauthenticated, "not logged in"); }

  void order(const Destination& destination) {
    if (tunnels_.closed_) return refuse(shutting_down());
    if (!destination.ssh_key.empty() && tunnels_.ssh_logins(destination.allocation) >= kSshLogins)
      return refuse({Code::kResourceExhausted,
                     "at most " + std::to_string(kSshLogins) +
                         " SSH logins of one shell at once; try again in a moment",
                     {}});
    destination_ = destination;
    id_ = random_token();
    v1::OpenTunnel message;
    message.set_tunnel_id(id_);
    message.set_allocation_id(destination.allocation.value);
    message.set_port(destination.port.port());
    if (request_->target().has_shell()) *message.mutable_shell() = request_->target().shell();
    message.set_ssh_key(destination.ssh_key);
    tunnels_.callers_[id_] = std::static_pointer_cast<CallerEnd>(shared_from_this());
    if (!tunnels_.order_(destination.agent, message))
      refuse(unreachable("agent " + destination.agent.value + " is not connected"));
  }

  void ended(const grpc::Status& status) override {
    tunnels_.callers_.erase(id_);
    if (stream_) context_.streams->close(*stream_);
    agent_.reset();
    TunnelEnd::ended(status);
    lease_.reset();
  }

  Tunnels& tunnels_;
  const Context& context_;
  const std::string_view method_;
  const Credentials credentials_;
  Caller caller_;  ///< set by authenticate()
  const MonoTime created_;
  std::shared_ptr<const v1::TunnelMessage> request_;
  std::shared_ptr<loop::Budget::Lease> lease_;
  Destination destination_;
  std::string id_;
  std::optional<Streams::Id> stream_;
  std::shared_ptr<TunnelEnd> agent_;
};

/// The end of an agent.
class AgentEnd final : public TunnelEnd {
 public:
  AgentEnd(Tunnels& tunnels, grpc::CallbackServerContext* call, AgentPeer identity)
      : TunnelEnd(tunnels.context_.edge, call), tunnels_(tunnels), identity_(std::move(identity)) {}

 private:
  void received(const v1::TunnelMessage& message) override {
    if (paired()) return relay(message);
    if (!message.has_answer())
      return refuse({Code::kInvalidArgument, "a tunnel of an agent begins with its answer", {}});
    const v1::TunnelAnswer& answer = message.answer();
    const Status named = caller_.check_name(answer.agent_id());
    named ? answered(answer) : refuse(named.error());
  }

  Status authenticate() override {
    TRY_ASSIGN(caller_, authorize_agent(identity_, tunnels_.context_.pool));
    return {};
  }

  void answered(const v1::TunnelAnswer& answer) {
    const auto found = tunnels_.callers_.find(answer.tunnel_id());
    const auto caller = found == tunnels_.callers_.end() ? nullptr : found->second.lock();
    // An agent may answer its own orders only, and each of them once.
    if (!caller || caller->destination().agent.value != answer.agent_id() || caller->agent_heard())
      return refuse({Code::kNotFound, "no such tunnel", {}});
    if (answer.error().empty()) return caller->join(shared_from_this());
    caller->refuse(caller->unreachable(make_utf8(answer.error().substr(0, kMaxTunnelError))));
    finish(grpc::Status::OK);
  }

  Tunnels& tunnels_;
  const AgentPeer identity_;
  AgentCaller caller_;  ///< set by authenticate()
};

Tunnels::Tunnels(const Context& context, Order order) : context_(context), order_(std::move(order)) {}

Tunnels::Reactor* Tunnels::connect(grpc::CallbackServerContext* call) {
  const auto end = std::make_shared<CallerEnd>(*this, call, kConnectMethod);
  end->start(end, context_.pools.read);
  return end.get();
}

Tunnels::Reactor* Tunnels::connect_ssh(grpc::CallbackServerContext* call) {
  const auto end = std::make_shared<CallerEnd>(*this, call, kConnectSshMethod);
  end->start(end, context_.pools.read);
  return end.get();
}

int Tunnels::ssh_logins(const AllocationId& allocation) const {
  const MonoTime now = mono_now();
  int count = 0;
  for (const auto& [id, weak] : callers_) {
    const auto caller = weak.lock();
    if (caller && caller->destination().allocation == allocation && caller->is_logging_in(now)) ++count;
  }
  return count;
}

Tunnels::Reactor* Tunnels::accept(grpc::CallbackServerContext* call) {
  AgentPeer peer = peer_of(*call);
  if (auto possible = may_be_agent(peer); !possible)
    return new RefusedStream<v1::TunnelMessage, v1::TunnelMessage>(possible.error());
  const auto end = std::make_shared<AgentEnd>(*this, call, std::move(peer));
  end->start(end, context_.pools.steer);
  return end.get();
}

void Tunnels::tick(MonoTime now) {
  context_.idle_tasks->tick(context_, now);
  // A copy, because the end of a tunnel erases it.
  const auto callers = callers_;
  for (const auto& [id, weak] : callers)
    if (const auto caller = weak.lock()) caller->check_time(now, caller->agent_heard());
}

void Tunnels::close() {
  closed_ = true;
  const auto callers = callers_;
  for (const auto& [id, weak] : callers)
    if (const auto caller = weak.lock()) caller->refuse(shutting_down());
}

}  // namespace det::api
