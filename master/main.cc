// Program det-master: builds and connects the components, runs them and stops them in reverse order.
#include <pthread.h>
#include <sodium.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "certificates.h"
#include "common/base/event.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/log_history.h"
#include "common/base/options.h"
#include "common/base/queue.h"
#include "common/base/secret.h"
#include "common/base/shared.h"
#include "database.h"
#include "first_start.h"
#include "import_command.h"
#include "master/api/auth/authorize.h"
#include "master/api/server.h"
#include "master/api/submit/secrets.h"
#include "master/config/options.h"
#include "master/db/accounts/join.h"
#include "master/db/accounts/sessions.h"
#include "master/db/queries/cluster.h"
#include "master/db/queries/logs.h"
#include "master/engines/edge.h"
#include "master/http/site.h"
#include "master/webhooks/sender.h"
#include "rotate_command.h"

namespace det {
namespace {

constexpr auto kStopGrace = std::chrono::seconds(3);
// With the end of the private database, a stop takes at most 10 s.
constexpr auto kStopLimit = std::chrono::seconds(8);
constexpr auto kTick = std::chrono::milliseconds(250);
constexpr int kTicksPerSecond = 4;
constexpr std::size_t kLogLines = 5000;  // kept in memory for the API

/// Reason of the end of the program: a signal (no error) or a failure.
struct End {
  std::optional<Error> error;
};
using Ends = Queue<End>;

/// Receives SIGTERM and SIGINT on one thread; all other threads start with them blocked. A second signal
/// ends the private database and exits at once.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGTERM);
    ::sigaddset(&set_, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  void watch(Ends& ends) {
    std::thread([this, &ends] {
      int number = 0;
      ::sigwait(&set_, &number);
      // A second one that is pending already must not race against the end of an orderly stop.
      const timespec now{};
      if (::sigtimedwait(&set_, nullptr, &now) < 0) {
        log::info("stopping", {{"signal", number}});
        ends.try_push(End{});
        ::sigwait(&set_, &number);
      }
      std::fprintf(stderr, "det-master: second signal, exiting at once\n");
      if (const auto server = database_.get(); server && *server) (*server)->end_now();
      ::_exit(1);
    }).detach();
  }
  /// `server`: the private database, or null.
  void set_database(std::shared_ptr<db::PrivateServer> server) {
    database_.set(std::make_shared<std::shared_ptr<db::PrivateServer>>(std::move(server)));
  }

 private:
  sigset_t set_;
  Shared<std::shared_ptr<db::PrivateServer>> database_;
};

/// Watchdog: if an orderly stop takes longer than kStopLimit, ends the private database and exits the
/// process.
class StopLimit {
 public:
  /// `server` may be null, and must outlive this object.
  explicit StopLimit(db::PrivateServer* server)
      : thread_([this, server] {
          if (over_.wait_for(kStopLimit)) return;
          std::fprintf(stderr, "det-master: stopping took too long, exiting\n");
          if (server) server->end_now();
          ::_exit(1);
        }) {}
  ~StopLimit() {
    over_.set();
    thread_.join();
  }

 private:
  Event over_;
  std::thread thread_;
};

core::Now now() { return {mono_now(), wall_now()}; }

/// Converts the scheduler settings of a pool.
scheduler::Rules to_rules(const SchedulerConfig& config) {
  scheduler::Rules rules{.preemption = config.preemption};
  if (config.type == "fair_share") rules.policy = scheduler::Policy::kFairShare;
  if (config.type == "round_robin") rules.policy = scheduler::Policy::kRoundRobin;
  return rules;
}

/// Returns the id of the cluster within names of pilots: they have room for a part of it.
std::string pilot_cluster(const std::string& cluster_id) { return cluster_id.substr(0, 8); }

/// Converts the settings of the pools with a provider.
std::map<std::string, core::PilotRules> to_rules(const std::map<std::string, ProviderConfig>& providers) {
  std::map<std::string, core::PilotRules> rules;
  for (const auto& [pool, provider] : providers) {
    rules.emplace(pool, core::PilotRules{.engine = provider.type,
                                         .max_pilots = provider.max_pilots,
                                         .slots_per_node = provider.slots_per_node,
                                         .max_nodes = provider.max_nodes,
                                         .idle_timeout = provider.idle_timeout,
                                         .min_time_left = provider.min_time_left,
                                         .per_allocation = provider.per_allocation});
  }
  return rules;
}

/// Loads the durable state and rebuilds the core from it.
Result<core::Core> restore_core(const MasterConfig& config, db::PgStore& store, db::Pool& pool) {
  TRY_ASSIGN(core::Recovered recovered, store.load());
  TRY_ASSIGN(const db::Cluster cluster, db::load_cluster(pool));
  api::accept_derived_tokens(cluster.secret, recovered.allocations);
  log::info("restored", {{"experiments", recovered.experiments.size()},
                         {"trials", recovered.trials.size()},
                         {"allocations", recovered.allocations.size()}});
  std::map<std::string, scheduler::Rules> pools;
  for (const auto& [name, scheduler] : config.pools) pools.emplace(name, to_rules(scheduler));
  const core::Options options{.agent_lease = config.agent_lease,
                              .agent_kill_grace = config.agent_kill_grace,
                              .agent_margin = config.agent_margin,
                              .kill_repeat = config.kill_repeat,
                              .detached_limit = config.detached_limit,
                              .default_pool = config.default_pool,
                              .pool_rules = to_rules(config.scheduler),
                              .pools = std::move(pools),
                              .providers = to_rules(config.providers),
                              .cluster = pilot_cluster(cluster.id),
                              .token_key = random_bytes(32)};
  return core::Core::restore(options, std::move(recovered), now());
}

/// Collects the settings of the API. Secrets in the shown configuration are masked.
Result<api::Settings> load_settings(const MasterConfig& config, db::Pool& pool) {
  TRY_ASSIGN(const db::Cluster cluster, db::load_cluster(pool));
  Json shown = config.shown;
  api::mask_master_config(shown);
  return api::Settings{.version = DET_VERSION,
                       .cluster_id = cluster.id,
                       .cluster_name = config.cluster_name,
                       .master_id = uuid4(),
                       .checkpoint_storage = config.checkpoint_storage,
                       .task_defaults = config.task_defaults,
                       .pool_task_defaults = config.pool_task_defaults,
                       .launch_error = config.launch_error,
                       .task_user_tokens = config.task_user_tokens,
                       .shell_ssh = config.shell_ssh,
                       .tasks_as_root = config.tasks_as_root,
                       .log_retention_days = config.log_retention_days,
                       .shown_config = std::move(shown),
                       .allowed_host_paths = config.allowed_host_paths,
                       .default_pool = config.default_pool,
                       .new_user_role = config.new_user_role,
                       .heartbeat = config.heartbeat,
                       .agent_lease = config.agent_lease,
                       .agent_kill_grace = config.agent_kill_grace,
                       .detached_limit = config.detached_limit,
                       .session_lifetime = config.session_lifetime};
}

/// All components that serve, from the loop outwards. Members are destroyed in reverse order; stop() ends
/// their activity before.
class Master {
 public:
  Master(const MasterConfig& config, api::Settings settings, core::Core core, Database& database,
         DatabasePools& pools, std::unique_ptr<http::Site> site,
         std::shared_ptr<const api::Authority> authority, Ends& ends)
      : config_(config),
        settings_(std::move(settings)),
        database_(database),
        background_(pools.background),
        ends_(ends),
        site_(std::move(site)),
        loop_(std::move(core), *database.store, now),
        bulk_(bulk_options(database)),
        metrics_(pools.api, bulk_),
        edge_(
            1, 1 << 20, [this] { tick(); }, kTick),
        passwords_(1, 64),
        json_(2),
        chores_(1, 16, [this] { watch_database(); }),
        storages_(std::make_shared<storage::Storages>(config.storages)),
        collector_(background_, {.cluster_id = settings_.cluster_id, .storages = storages_},
                   storage_agents()),
        webhooks_(background_, {.cluster_id = settings_.cluster_id,
                                .signing_key = config.webhooks.signing_key,
                                .base_url = config.webhooks.base_url,
                                .egress = config.webhooks.egress}),
        context_{.settings = settings_,
                 .loop = loop_,
                 .hub = hub_,
                 .pool = pools.api,
                 .stream_pool = pools.stream,
                 .bulk = bulk_,
                 .metrics = metrics_,
                 .pools = pools_,
                 .passwords = passwords_,
                 .edge = edge_,
                 .storages = storages_,
                 .collector = &collector_,
                 .webhooks = &webhooks_,
                 .disk = database.disk.get()},
        server_(context_, std::move(authority)),
        engines_(config.providers, "det-" + pilot_cluster(settings_.cluster_id) + "-", core_link()) {}

  void start() {
    loop_.start({.send =
                     [this](core::Send send) {
                       const bool engine = std::holds_alternative<core::SubmitPilot>(send) ||
                                           std::holds_alternative<core::CancelPilot>(send);
                       if (engine) return engines_.send(std::move(send));
                       server_.send(send);
                     },
                 .changed =
                     [this](const loop::Change& change) {
                       server_.changed(change);
                       // The event of a new state was stored with it.
                       if (change.kind == loop::Change::Kind::kExperiment) webhooks_.wake();
                     }},
                [this](Error error) { ends_.try_push(End{std::move(error)}); });
    engines_.start();
    const Json info = {{"version", api::kDeterminedVersion},     {"release", settings_.version},
                       {"master_id", settings_.master_id},       {"cluster_id", settings_.cluster_id},
                       {"cluster_name", settings_.cluster_name}, {"telemetry", {{"enabled", false}}},
                       {"sso_providers", Json::array()}};
    // The site comes last: from here on clients are served.
    site_->start({.channel = server_.channel(),
                  .services = api::services(),
                  .hub = hub_,
                  .workers = json_,
                  .serial = edge_,
                  .admit =
                      [this](const http::Entrance& from, auto done) {
                        server_.admit(
                            from.method,
                            api::read_credentials(from.authorization, from.allocation_token, from.address),
                            from.large, std::move(done));
                      },
                  .grpc = [this](UniqueFd fd) { server_.take(std::move(fd)); },
                  .health = [this] { return health(); },
                  .info = dump_json(info) + "\n",
                  .rights = [this] { return server_.rights_generation(); }});
    serving_ = true;
  }

  // Producers stop before their consumers: connections first, then the threads that serve them, then the
  // loop, then the writers and the event bus that the loop feeds.
  void stop() {
    if (database_.own) database_.own->refuse_restarts();
    chores_.stop();
    engines_.stop();
    site_->close();
    server_.stop(kStopGrace);
    collector_.stop();
    webhooks_.stop();
    json_.stop();
    pools_.stop();
    passwords_.stop();
    loop_.stop();
    bulk_.stop();
    hub_.stop();
    edge_.stop();
    site_->stop();
  }

 private:
  void tick() {
    if (!serving_) return;
    server_.tick();
    site_->tick();
    ++ticks_;
    // Hourly is enough: expired sessions and tokens are refused anyway.
    if (ticks_ % (3600 * kTicksPerSecond) == 1) {
      chores_.try_post([this] {
        (void)db::delete_expired_sessions(background_);
        (void)db::delete_expired_joins(background_);
        remove_old_logs();
      });
    }
  }

  /// Removes logs beyond their retention period.
  void remove_old_logs() {
    const auto tasks = db::forget_logs(background_, config_.log_retention_days);
    if (!tasks) log::warn("expired logs could not be deleted", {{"reason", tasks.error().message}});
    if (tasks && *tasks > 0) log::info("deleted expired logs", {{"tasks", *tasks}});
  }

  /// Actions of log policies go to the core.
  db::BulkOptions bulk_options(const Database& database) {
    return {.connect = database.connect,
            .cancel_retries = [this](TrialId trial) { loop_.submit(core::CancelRetries{trial}); },
            .exclude_agent =
                [this](TrialId trial, const AgentId& agent) {
                  loop_.submit(core::ExcludeAgent{trial, agent});
                }};
  }

  /// Access of the engines to the core.
  engines::CoreLink core_link() {
    return {.submit = [this](core::Input input) { loop_.submit(std::move(input)); },
            .pilots = [this]() -> Result<std::map<std::string, core::Pilot>> {
              auto pilots = std::make_shared<std::map<std::string, core::Pilot>>();
              auto read =
                  loop_.inspect_uncommitted([pilots](const core::Core& core) { *pilots = core.pilots(); });
              if (!read.wait()) return fail(Code::kUnavailable, "the master is shutting down");
              return *pilots;
            }};
  }

  /// Access of the collector to agents. The collector exists before the server serves.
  gc::StorageAgents storage_agents() {
    return {.ask = [this](const AgentId& agent, const storage::Work& work) -> Result<storage::Done> {
              if (!serving_) return fail(Code::kUnavailable, "the master is starting");
              return server_.storage_agents().ask(agent, work);
            },
            .connected =
                [this] { return serving_ ? server_.storage_agents().connected() : std::vector<AgentId>(); }};
  }

  /// Looks at the disk of the private database server, and restarts the server if it died.
  void watch_database() {
    if (!database_.own) return;
    database_.disk->look();
    if (auto up = database_.own->keep_up(); !up)
      log::error("private database could not be restarted", {{"reason", up.error().message}});
  }

  std::string health() const {
    Json shown = {{"status", "up"}, {"version", settings_.version}, {"clusterId", settings_.cluster_id}};
    if (const Status disk = database_.disk ? database_.disk->check() : Status(); !disk) {
      shown["status"] = "degraded";
      shown["reason"] = disk.error().message;
    }
    return dump_json(shown) + "\n";
  }

  const MasterConfig& config_;
  const api::Settings settings_;
  Database& database_;
  db::Pool& background_;
  Ends& ends_;
  std::atomic<bool> serving_{false};
  int ticks_ = 0;
  std::unique_ptr<http::Site> site_;
  loop::Hub hub_;
  loop::Loop loop_;
  db::BulkWriter bulk_;
  db::MetricCache metrics_;
  loop::Workers edge_;
  loop::WorkerPools pools_;
  loop::Workers passwords_, json_, chores_;
  const std::shared_ptr<storage::Storages> storages_;
  gc::Collector collector_;
  webhooks::Sender webhooks_;
  api::Context context_;
  api::Server server_;
  engines::Engines engines_;
};

Status serve(const MasterConfig& config, Signals& signals) {
  TRY(make_directories(config.data_dir, 0700));
  Ends ends(8);
  signals.watch(ends);
  std::optional<Certificates> certificates;
  http::TlsServer tls;
  if (config.tls.enabled) {
    TRY_ASSIGN(certificates, load_certificates(config));
    TRY_ASSIGN(tls, http::make_tls_server(certificates->server.certificate, certificates->server.key,
                                          certificates->authority->identity.certificate));
  }
  TRY_ASSIGN(const std::string join_hash,
             load_local_join_token(config, certificates ? certificates->authority->pin : ""));
  // Binds the port before the database is opened, so that an address in use fails first.
  TRY_ASSIGN(auto site, http::Site::open({.address = config.listen_address,
                                          .port = config.listen_port,
                                          .webui_dir = config.webui_dir,
                                          .connections = config.connections,
                                          .connections_per_address = config.connections_per_address,
                                          .trusted_proxies = config.trusted_proxies,
                                          .tls = tls,
                                          .shell_ssh = config.shell_ssh}));
  const int port = site->port();
  TRY_ASSIGN(Database database, open_database(config));
  signals.set_database(database.own);
  DatabasePools pools(database.connect);
  TRY(protect_secrets(config, pools.background));
  TRY(create_admin(pools.background, config));
  TRY_ASSIGN(api::Settings settings, load_settings(config, pools.background));
  settings.local_join_hash = join_hash;
  TRY_ASSIGN(core::Core core, restore_core(config, *database.store, pools.background));
  const bool v6 = config.listen_address.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + config.listen_address + "]" : config.listen_address;

  auto master =
      std::make_unique<Master>(config, std::move(settings), std::move(core), database, pools, std::move(site),
                               certificates ? certificates->authority : nullptr, ends);
  master->start();
  std::printf("ready http%s://%s:%d\n", tls ? "s" : "", host.c_str(), port);
  std::fflush(stdout);
  log::info("serving", {{"address", host}, {"port", port}, {"version", DET_VERSION}});

  const std::optional<End> end = ends.pop();
  StopLimit limit(database.own.get());
  if (end && end->error) {
    // The core's memory is ahead of the store: nothing more may be sent or written. The next start reloads.
    log::error("store failed", {{"error", end->error->message}});
    if (database.own) database.own->abandon();
    std::fprintf(stderr, "det-master: %s\n", end->error->message.c_str());
    ::_exit(1);
  }
  master->stop();
  master.reset();
  database.store.reset();
  if (database.own) TRY(database.own->stop());
  log::info("stopped");
  return {};
}

int run(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == kImportWord) return run_import(arguments);
  if (!arguments.empty() && arguments[0] == kRotateWord) return run_rotation(arguments);
  const OptionTable& table = master_options();
  auto options = Options::load(table, arguments, process_environment());
  if (!options) {
    std::fprintf(stderr, "det-master: %s\n", options.error().message.c_str());
    return 2;
  }
  if (options->help()) return std::fputs(help_text(table).c_str(), stdout) < 0;
  if (options->version()) return std::printf("det-master %s\n", DET_VERSION) < 0;
  if (options->sample()) return std::fputs(sample_config(table).c_str(), stdout) < 0;
  auto config = read_master_config(*options);
  if (!config) {
    std::fprintf(stderr, "det-master: %s\n", config.error().message.c_str());
    return 2;
  }
  Signals signals;
  Status status;
  if (::sodium_init() < 0) status = fail(Code::kInternal, "libsodium does not start");
  // The egress policy must be in force before any storage is contacted.
  storage::set_egress_policy(config->storage_egress);
  log::keep_history(kLogLines);
  if (status) status = init_log(config->log);
  if (status) {
    for (const Problem& warning : config->warnings) log::warn(warning.message, {{"key", warning.path}});
  }
  if (status) status = serve(*config, signals);
  if (status) return 0;
  std::fprintf(stderr, "det-master: %s\n", status.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace det

int main(int argc, char** argv) { return det::run(argc, argv); }
