// Owns what the services share: references to the parts they translate for, and the settings they speak of.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/kill_grace.h"
#include "master/api/call_stats.h"
#include "master/api/sessions.h"
#include "master/api/streams.h"
#include "master/db/bulk.h"
#include "master/db/metric_cache.h"
#include "master/db/pool.h"
#include "master/gc/collector.h"
#include "master/loop/hub.h"
#include "master/loop/loop.h"
#include "master/loop/workers.h"

namespace det::api {

struct Settings {
  std::string version;
  std::string cluster_id;
  std::string cluster_name;
  std::string cluster_secret;          ///< signs allocation tokens; never leaves the process
  std::string master_id;               ///< uuid of this process
  Json checkpoint_storage;             ///< default of experiments that name none
  Json task_container_defaults;        ///< likewise of what they run in, in the form of their configuration
  bool launch_error = true;            ///< refuse what no agent could ever run
  Json shown_config = Json::object();  ///< what administrators see of the master's settings; no secrets
  std::vector<std::string> allowed_host_paths;  ///< that experiments may mount; empty: any
  std::string default_pool = "default";
  Duration heartbeat = std::chrono::seconds(2);
  Duration agent_lease = std::chrono::minutes(10);
  Duration agent_kill_grace = kDefaultKillGrace;
  Duration unmanaged_limit = std::chrono::minutes(5);
  Duration session_lifetime = std::chrono::hours(24 * 7);
};

/// All outlive the server.
struct Context {
  const Settings& settings;
  loop::Loop& loop;
  loop::Hub& hub;
  db::Pool& pool;
  db::BulkWriter& bulk;
  db::MetricCache& metrics;
  loop::Workers& workers;    ///< handlers that wait for the database or the core
  loop::Workers& passwords;  ///< one thread: hashing, throttling
  loop::Workers& edge;       ///< one thread: state of agent links, harness sessions and followers
  loop::Workers& downloads;  ///< few threads: each may be held as long as a client reads
  std::shared_ptr<Sessions> sessions = std::make_shared<Sessions>(pool);
  std::shared_ptr<Streams> streams = std::make_shared<Streams>();  ///< ticked by the server
  gc::Collector* collector = nullptr;                              ///< never null where calls are served
  std::shared_ptr<CallStats> calls = std::make_shared<CallStats>();
};

}  // namespace det::api
