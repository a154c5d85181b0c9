// Registration of all services at one server, and its limits.
#include "master/api/server.h"

#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>

#include <cstdlib>
#include <variant>
#include <vector>

#include "common/base/log.h"
#include "common/client/grpc_keepalive.h"
#include "master/api/accounts/audit.h"
#include "master/api/accounts/auth.h"
#include "master/api/accounts/deletions.h"
#include "master/api/accounts/group.h"
#include "master/api/accounts/join.h"
#include "master/api/accounts/model.h"
#include "master/api/accounts/policy.h"
#include "master/api/accounts/project.h"
#include "master/api/accounts/role.h"
#include "master/api/accounts/template.h"
#include "master/api/accounts/token.h"
#include "master/api/accounts/user.h"
#include "master/api/accounts/workspace.h"
#include "master/api/cluster/allocation.h"
#include "master/api/cluster/binding.h"
#include "master/api/cluster/cluster.h"
#include "master/api/cluster/diagnosis.h"
#include "master/api/cluster/job.h"
#include "master/api/cluster/master.h"
#include "master/api/cluster/pilot.h"
#include "master/api/cluster/prometheus.h"
#include "master/api/cluster/quota.h"
#include "master/api/cluster/usage.h"
#include "master/api/cluster/webhook.h"
#include "master/api/experiments/bracket.h"
#include "master/api/experiments/checkpoint.h"
#include "master/api/experiments/detached.h"
#include "master/api/experiments/experiment.h"
#include "master/api/experiments/explanation.h"
#include "master/api/experiments/log.h"
#include "master/api/experiments/media.h"
#include "master/api/experiments/reporter.h"
#include "master/api/experiments/run.h"
#include "master/api/experiments/search.h"
#include "master/api/experiments/trial.h"
#include "master/api/streams/agent_link.h"
#include "master/api/streams/harness_session.h"
#include "master/api/submit/code_archive.h"
#include "master/api/tasks/command.h"
#include "master/api/tasks/interactive.h"
#include "master/api/tasks/task.h"

namespace det::api {
namespace {

// Time for the HTTP/2 handshake of a connection.
constexpr int kHandshakeMs = 5'000;
constexpr int kMaxRequestBytes = 4 << 20;
constexpr int kMetadataBytes = 8 << 10;
constexpr int kStreamsPerConnection = 100;
// Keepalive pings of idle connections, and the time for their acknowledgment.
constexpr int kKeepaliveMs = 20'000;
constexpr int kPingAnswerMs = 10'000;
// Memory quota of the network server.
constexpr std::size_t kMemoryBytes = 1ULL << 30;

void set_limits(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
  // Clients may ping as often as every 5 s without data.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  grpc::ResourceQuota quota("det-master");
  quota.Resize(kMemoryBytes);
  builder.SetResourceQuota(quota);
}

}  // namespace

struct Server::Parts {
  Parts(const Context& c, std::shared_ptr<const Authority> authority)
      : context(c),
        deletions(c),
        agent(add<AgentService>(c)),
        allocation(add<AllocationService>(c)),
        harness(add<HarnessService>(c)),
        master(add<MasterService>(c)) {
    add<JoinService>(c, std::move(authority));
    add<AuditService>(c);
    add<AuthService>(c);
    add<BindingService>(c);
    add<BracketService>(c);
    add<CheckpointService>(c);
    add<ClusterService>(c);
    add<CommandService>(c);
    add<ConfigPolicyService>(c);
    add<DetachedService>(c);
    add<DiagnosisService>(c);
    add<ExperimentService>(c);
    add<ExplanationService>(c);
    add<InteractiveService>(c);
    add<GroupService>(c);
    add<JobService>(c);
    add<LogService>(c);
    add<MediaService>(c, harness);
    add<ModelService>(c);
    add<PilotService>(c);
    add<ProjectService>(c, deletions);
    add<PrometheusService>(c);
    add<QuotaService>(c);
    add<RoleService>(c);
    add<RunService>(c);
    add<SearchService>(c);
    add<TaskService>(c, agent.tunnels());
    add<TemplateService>(c);
    add<TokenService>(c);
    add<TrialService>(c);
    add<UsageService>(c);
    add<UserService>(c);
    add<WebhookService>(c);
    add<WorkspaceService>(c, deletions);
    // A method without a handler is a programming error; it must not be found by a client.
    for (const auto& service : services) {
      for (const std::string& method : service->missing()) {
        log::error("internal error: " + method + " has no handler");
        std::abort();
      }
    }
  }

  template <typename S, typename... Arguments>
  S& add(Arguments&&... arguments) {
    auto service = std::make_unique<S>(std::forward<Arguments>(arguments)...);
    S& added = *service;
    services.push_back(std::move(service));
    return added;
  }

  void offer(grpc::ServerBuilder& builder) {
    for (const auto& service : services) builder.RegisterService(service.get());
  }

  const Context& context;
  Deletions deletions;  ///< before the services that refer to it
  std::vector<std::unique_ptr<Service>> services;
  AgentService& agent;
  AllocationService& allocation;
  HarnessService& harness;
  MasterService& master;
  GrpcKeepAlive keepalive;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  /// Serves the gateway only. The gateway limits bodies by route, so that a whole code archive fits into
  /// a message.
  std::unique_ptr<grpc::Server> inside;
};

Server::Server(const Context& context, std::shared_ptr<const Authority> authority)
    : parts_(std::make_unique<Parts>(context, std::move(authority))) {
  grpc::ServerBuilder builder;
  set_limits(builder);
  parts_->offer(builder);
  parts_->acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  parts_->server = builder.BuildAndStart();

  grpc::ServerBuilder inside;
  inside.SetMaxReceiveMessageSize(-1);
  inside.SetMaxSendMessageSize(-1);
  parts_->offer(inside);
  parts_->inside = inside.BuildAndStart();
}

Server::~Server() = default;

void Server::take(UniqueFd connection) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = connection.release();
  parts_->acceptor->HandleNewConnection(&parameters);
}

std::shared_ptr<grpc::Channel> Server::channel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return parts_->inside->InProcessChannel(arguments);
}

void Server::admit(const std::string& method, Credentials credentials, bool large,
                   const std::function<void(Result<std::shared_ptr<loop::Budget::Lease>>)>& done) {
  const Access* const entry = access(method);
  if (entry && entry->requirement == Requirement::kNone) return done(nullptr);
  const bool process = credentials.user_token.empty();
  if (process && credentials.allocation_token.empty())
    return done(fail(Code::kUnauthenticated, "not logged in"));
  // Reports are frequent, and this thread may be the only one of the gateway.
  const bool may_report = entry && (entry->requirement == Requirement::kAllocation ||
                                    entry->requirement == Requirement::kUserOrAllocation);
  if (process && !large && may_report &&
      parts_->context.allocation_tokens->confirmed(token_hash(credentials.allocation_token)))
    return done(nullptr);
  const auto decide = [&context = parts_->context, method, large, process,
                       credentials =
                           std::move(credentials)]() -> Result<std::shared_ptr<loop::Budget::Lease>> {
    TRY_ASSIGN(const Caller caller, authenticate(method, credentials, *context.sessions));
    // Users speak for their own trials outside the cluster only.
    if (large && !process && caller.token_hash.empty()) TRY(find_reporter(context, caller, {}));
    if (large) TRY(check_roles(method, caller, context.pool));
    if (process && !large) return nullptr;
    auto lease = context.uploads->take(budget_owner(caller), 0);
    if (!lease) return too_many_uploads();
    return std::make_shared<loop::Budget::Lease>(std::move(*lease));
  };
  loop::Workers& workers = process ? parts_->context.pools.ingest : parts_->context.pools.steer;
  if (!workers.try_post([done, decide] { done(decide()); })) done(tl::unexpected(busy()));
}

void Server::send(const core::Send& send) {
  std::visit(
      [this](const auto& command) {
        using T = std::decay_t<decltype(command)>;
        if constexpr (std::is_same_v<T, core::StartAllocation>) parts_->agent.start(command);
        if constexpr (std::is_same_v<T, core::KillAllocation>) parts_->agent.kill(command);
        if constexpr (std::is_same_v<T, core::AllocationForgotten>) parts_->agent.forget(command);
        if constexpr (std::is_same_v<T, core::CheckSlot>) parts_->agent.check(command);
        if constexpr (std::is_same_v<T, core::PreemptAllocation>) {
          // A process uses either the gRPC session or the HTTP long poll.
          parts_->harness.preempt(command.allocation);
          parts_->allocation.preempt(command.allocation);
        }
      },
      send);
}

void Server::changed(const loop::Change& change) {
  if (change.kind == loop::Change::Kind::kMetrics && change.name == "validation")
    // Training metrics are counted where they become durable.
    ++parts_->context.calls->metric_reports;
  // The allocation may have ended; its token must be verified again.
  if (change.kind == loop::Change::Kind::kAllocation) parts_->context.allocation_tokens->forget(change.trial);
  if (change.kind == loop::Change::Kind::kAllocation || change.kind == loop::Change::Kind::kCommand)
    parts_->context.sessions->forget_task(change.task);
  parts_->context.collector->changed(change);
  parts_->context.hub.publish(change);
}

gc::StorageAgents Server::storage_agents() {
  return {.ask = [agents = &parts_->agent](const AgentId& id,
                                           const storage::Work& work) { return agents->ask(id, work); },
          .connected = [agents = &parts_->agent] { return agents->connected(); }};
}

void Server::tick() {
  parts_->agent.tick();
  parts_->harness.tick();
  parts_->context.streams->tick(parts_->context.pools.read, *parts_->context.sessions);
  parts_->context.quotas->tick(parts_->context.pools.read);
  parts_->allocation.tick();
  parts_->master.tick();
}

std::uint64_t Server::rights_generation() const { return parts_->context.sessions->generation(); }

void Server::stop(Duration grace) {
  parts_->context.edge.post([parts = parts_.get()] {
    parts->agent.close();
    parts->harness.close();
    parts->allocation.close();
    // gRPC takes deadlines of the system clock.
  });
  const auto deadline =
      std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) + grace;
  parts_->inside->Shutdown(deadline);
  parts_->server->Shutdown(deadline);
  parts_->deletions.stop();
}

}  // namespace det::api
