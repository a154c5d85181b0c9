// Owns how training speaks to whoever runs it. Standard library and JSON only: no LibTorch, no protobuf. Two
// implementations, chosen once: client_local (prints) and client_cluster (a stream to the master).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"

namespace det::storage {
class Bucket;
}

namespace det {

/// How a training program ends, beyond 0 and 1.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitStaleRun = 80,  ///< the master runs this trial elsewhere by now
};

/// Who this process is and what it shall train.
struct TrialInfo {
  std::int64_t experiment_id = 0;
  std::int64_t trial_id = 0;
  std::int32_t run = 0;
  std::int64_t seed = 0;
  Json hparams = Json::object();
  Json experiment_config = Json::object();
  std::string latest_checkpoint;  ///< uuid; "" for none
  std::string checkpoint_dir;  ///< where checkpoints lie, one folder a uuid; of a bucket what is on its way
                               ///< here or there
  std::shared_ptr<const storage::Bucket> bucket;  ///< where checkpoints lie, if not in a directory
  std::string model_dir;                          ///< "" for none
  bool on_cluster = false;
  std::string master;  ///< host:port, or https://host:port; "" without a cluster
  std::string cluster_id, agent_id, task_id, allocation_id;  ///< likewise
  std::vector<int> slot_ids;
};

/// A checkpoint whose files are all on disk.
struct CheckpointRecord {
  std::string uuid;
  std::int64_t steps_completed = 0;
  std::map<std::string, std::int64_t> resources;  ///< path → bytes
  Json metadata = Json::object();
};

/// Reports take effect in the order made, and each once however often it is sent. Reporting does not wait for
/// the network; it blocks only when the spool is full. Any thread may report; those of one thread keep their
/// order.
class Client {
 public:
  virtual ~Client() = default;
  virtual void report_metrics(const std::string& group, std::int64_t steps_completed,
                              const Json& metrics) = 0;
  virtual void report_progress(double progress, std::int64_t steps_completed) = 0;
  virtual void report_checkpoint(const CheckpointRecord& record) = 0;
  /// The trial's hyperparameters cannot work.
  virtual void report_invalid_hp() = 0;
  /// The slots are wanted back: save at the next batch boundary and leave. Cheap: asked every batch.
  virtual bool should_preempt() const = 0;
  /// Much is unsent: what nobody would miss should not be reported now.
  virtual bool backlogged() const { return false; }
  /// The checkpoint is saved and this process leaves.
  virtual void acknowledge_preemption() = 0;
  /// A trial outside the cluster ends: the last of its reports, made when all others are flushed. Elsewhere
  /// the process's exit says it.
  virtual void report_end(bool /*failed*/, const std::string& /*message*/) {}
  /// Waits until every report is durable; false when `timeout` passed before.
  virtual bool flush(std::chrono::seconds timeout) = 0;
};

/// Prints reports, a line each. SIGINT and SIGTERM ask for preemption (the second one kills).
std::unique_ptr<Client> make_local_client();
/// Reports nothing: for ranks other than the chief. With `takes_signals` an interrupt asks for preemption as
/// above, so that a process lives until the chief has told it.
std::unique_ptr<Client> make_quiet_client(bool takes_signals);

/// Where and as whom the cluster client reports.
struct ClusterAddress {
  std::string master;  ///< host:port, or https://host:port
  std::string allocation_id;
  std::string session_token;
  std::int32_t trial_id = 0;
  std::int32_t run = 0;
  /// Outside the cluster: the owner's, instead of allocation and its token. Such a client says that it lives
  /// as often as the master wants it, and when the master ends the trial it asks for preemption instead of
  /// ending the process.
  std::string user_token;
  std::string cert_file = "";  ///< what vouches for the master; "": as the environment says
  /// Called once or more when should_preempt() becomes true, on a thread of the client's; must be quick.
  /// Null: nobody.
  void (*preempted)() = nullptr;
};

/// An experiment to make whose trial is this process.
struct DetachedRequest {
  std::string master, user;  ///< "": as the det command finds them
  std::string config;        ///< YAML
  std::string request_id;
};
struct DetachedTrial {
  std::string master;  ///< host:port, or https://host:port
  std::int64_t experiment_id = 0, trial_id = 0;
  std::string experiment_config;  ///< JSON, resolved
  std::string error;              ///< when there is none
};

}  // namespace det

/// Exported by libdet_cluster.so; the caller owns the client.
extern "C" det::Client* det_make_cluster_client(const det::ClusterAddress* address);
using DetMakeClusterClient = det::Client* (*)(const det::ClusterAddress*);
/// Likewise. Logs in as the det command does, makes the experiment, and opens its session. Null with
/// trial->error.
extern "C" det::Client* det_make_detached_client(const det::DetachedRequest* request,
                                                 det::DetachedTrial* trial);
using DetMakeDetachedClient = det::Client* (*)(const det::DetachedRequest*, det::DetachedTrial*);
