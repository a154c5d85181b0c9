// Dependencies shared by all services, and the settings of the master that they need.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/stop_signal.h"
#include "common/expconf/parse.h"
#include "common/storage/policy.h"
#include "master/api/auth/sessions.h"
#include "master/api/call_stats.h"
#include "master/api/cluster/quota_meter.h"
#include "master/api/experiments/metric_names.h"
#include "master/api/streams/device_readings.h"
#include "master/api/streams/streams.h"
#include "master/api/tasks/idle_tasks.h"
#include "master/db/ingest/bulk.h"
#include "master/db/pg/disk_watch.h"
#include "master/db/pg/pool.h"
#include "master/db/series/metric_cache.h"
#include "master/gc/collector.h"
#include "master/loop/budget.h"
#include "master/loop/hub.h"
#include "master/loop/loop.h"
#include "master/loop/worker_pools.h"
#include "master/webhooks/sender.h"

namespace det::api {

/// Release of Determined AI that clients compare with their own.
inline constexpr const char* kDeterminedVersion = "0.38.1";

/// Settings of the master, constant while it runs.
struct Settings {
  std::string version;
  std::string cluster_id;
  std::string cluster_name;
  std::string master_id;  ///< uuid of this process, new at each start
  /// Hash of the join token in DATA_DIR/agent-join-token; "" admits no agent by it.
  std::string local_join_hash;
  /// Default for experiments without one.
  Json checkpoint_storage;
  /// Defaults of tasks, and those of single pools, which override them.
  expconf::TaskDefaults task_defaults;
  std::map<std::string, expconf::TaskDefaults> pool_task_defaults;
  /// Refuse submissions that no agent can ever run.
  bool launch_error = true;
  /// Processes of tasks get a token of their owner.
  bool task_user_tokens = false;
  /// Shells have a key for ssh, and their SSH servers are reached without a login to the master.
  bool shell_ssh = false;
  /// Tasks without an agent user see themselves as root.
  bool tasks_as_root = false;
  /// Days after the end of a task until its log is deleted; -1: never.
  std::int64_t log_retention_days = -1;
  /// Settings for GetMasterConfig, without secrets.
  Json shown_config = Json::object();
  /// Host paths that experiments may mount. Empty: all.
  std::vector<std::string> allowed_host_paths;
  std::string default_pool = "default";
  /// Stored name of the role of new users in the default workspace, or "NONE".
  std::string new_user_role = "EDITOR";
  /// Interval between heartbeats of an agent. Three missed heartbeats end its link.
  Duration heartbeat = std::chrono::seconds(2);
  /// An agent without contact for this long ends its allocations.
  Duration agent_lease = std::chrono::minutes(10);
  /// Time between SIGTERM and SIGKILL of a process.
  Duration agent_kill_grace = kDefaultKillGrace;
  /// A trial outside the cluster that is silent for this long has failed.
  Duration detached_limit = std::chrono::minutes(5);
  /// Validity of a login.
  Duration session_lifetime = std::chrono::hours(24 * 7);
};

/// Bytes of unfinished uploads in memory: in total, and of one caller. Covers one code archive in base64 with
/// room for a second one.
inline constexpr std::int64_t kUploadBytes = 512LL << 20, kUploadBytesPerCaller = 200LL << 20;
/// Downloads and metric streams open at once: in total, and of one caller. The total leaves a queue for the
/// threads of WorkerPools::stream.
inline constexpr std::int64_t kPacedStreams = 128, kPacedStreamsPerCaller = 6;
/// Bytes of log lines in memory that wait for their reader: in total, and of one caller. A page has about 1
/// MiB.
inline constexpr std::int64_t kLogPageBytes = 256LL << 20, kLogPageBytesPerCaller = 64LL << 20;

/// References to the parts of the master. All of them outlive the server.
struct Context {
  const Settings& settings;
  loop::Loop& loop;
  /// Distributes change notifications to event streams and log followers.
  loop::Hub& hub;
  db::Pool& pool;
  /// Connections of the stream pool, so that streams and other calls do not wait for each other's.
  db::Pool& stream_pool;
  /// Writes metrics and logs in batches, beside the core.
  db::BulkWriter& bulk;
  db::MetricCache& metrics;
  /// Threads of handlers, by kind of work.
  loop::WorkerPools& pools;
  /// One thread for password hashing and its throttle.
  loop::Workers& passwords;
  /// One thread that owns the state of agent links, harness sessions and log followers.
  loop::Workers& edge;
  /// The server forgets tokens as allocations change.
  std::shared_ptr<AllocationTokens> allocation_tokens = std::make_shared<AllocationTokens>(loop);
  std::shared_ptr<Sessions> sessions =
      std::make_shared<Sessions>(pool, settings.task_user_tokens, allocation_tokens);
  /// The server calls tick().
  std::shared_ptr<Streams> streams = std::make_shared<Streams>();
  /// Storages that experiments may use.
  std::shared_ptr<storage::Storages> storages = std::make_shared<storage::Storages>();
  /// Never null while calls are served.
  gc::Collector* collector = nullptr;
  /// Never null while calls are served.
  webhooks::Sender* webhooks = nullptr;
  /// Disk of the private database; null with an external one.
  const db::DiskWatch* disk = nullptr;
  /// Written by the edge worker.
  std::shared_ptr<DeviceReadings> readings = std::make_shared<DeviceReadings>();
  std::shared_ptr<CallStats> calls = std::make_shared<CallStats>();
  std::shared_ptr<MetricNames> metric_names = std::make_shared<MetricNames>();
  std::shared_ptr<QuotaMeter> quotas = std::make_shared<QuotaMeter>(pool);
  std::shared_ptr<IdleTasks> idle_tasks = std::make_shared<IdleTasks>();
  /// Memory of uploads, over gRPC and HTTP.
  std::shared_ptr<loop::Budget> uploads = std::make_shared<loop::Budget>(kUploadBytes, kUploadBytesPerCaller);
  std::shared_ptr<loop::Budget> paced_streams =
      std::make_shared<loop::Budget>(kPacedStreams, kPacedStreamsPerCaller);
  std::shared_ptr<loop::Budget> log_pages =
      std::make_shared<loop::Budget>(kLogPageBytes, kLogPageBytesPerCaller);
  /// Longest time of one write of a paced stream. Messages have about 1 MiB, so a client needs 35 KiB/s.
  Duration stream_write_time = std::chrono::seconds(30);
};

/// kUnavailable for a method that changes something while the disk of the database is full.
Status check_disk(const Context& context, std::string_view path);

}  // namespace det::api
