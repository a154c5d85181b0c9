// Client: the interface by which a training program reports to the master. Implementations: client_local
// (prints) and client_cluster (a gRPC stream to the master). Independent of LibTorch and protobuf.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/exit_codes.h"
#include "common/base/json.h"
#include "common/base/result.h"

namespace det::storage {
class Bucket;
}

namespace det {

/// Identity of this process, and the task it performs.
struct TrialInfo {
  std::int64_t experiment_id = 0;
  std::int64_t trial_id = 0;
  std::int32_t run = 0;
  std::int64_t seed = 0;
  Json hparams = Json::object();
  Json experiment_config = Json::object();
  std::string latest_checkpoint;  ///< uuid; "" for none
  /// Directory of checkpoints, one subdirectory per uuid; with a bucket, the local staging directory.
  std::string checkpoint_dir;
  std::shared_ptr<const storage::Bucket> bucket;  ///< storage of checkpoints, unless a directory
  std::string model_dir;                          ///< directory of the trial's code; "" for none
  bool on_cluster = false;
  std::string master;  ///< host:port, or https://host:port; "" without a cluster
  std::string cluster_id, agent_id, task_id, allocation_id;  ///< "" without a cluster
  std::vector<int> slot_ids;
};

/// A durable checkpoint, as reported to the master.
struct CheckpointRecord {
  std::string uuid;
  std::int64_t steps_completed = 0;
  std::map<std::string, std::int64_t> resources;  ///< path → bytes
  Json metadata = Json::object();
};

/// An entry of reported media. Name and step identify it.
struct MediaRecord {
  std::string kind;  ///< IMAGE, HISTOGRAM, TEXT, TABLE or FILE
  std::string name;
  std::int64_t steps_completed = 0;
  std::string caption;
  std::string content;         ///< PNG, JSON, UTF-8 text, or the bytes of the file
  std::string file_name = {};  ///< of FILE
  /// Called once with the result, unless the process ends first; null: failures are printed.
  std::function<void(const Status&)> done = nullptr;
};

/// A user's request for a trace of the next batches.
struct ProfileRequest {
  std::string id;
  std::int64_t batches = 1;
  bool record_shapes = false, profile_memory = false, with_stack = false;
};
/// Progress of a request.
struct ProfileProgress {
  enum class State { kWaiting, kRecording, kStoring, kDone, kFailed };
  std::string id;
  State state = State::kWaiting;
  std::int64_t batches = 0;  ///< recorded
  std::string message = {};  ///< reason of a failure, or of fewer batches than requested
};

/// Sends reports. Reports take effect in the order in which they were made, each exactly once even if it is
/// resent. Reporting does not wait for the network; it blocks only while the spool is full. Thread-safe; the
/// reports of one thread keep their order.
class Client {
 public:
  virtual ~Client() = default;
  virtual void report_metrics(const std::string& group, std::int64_t steps_completed,
                              const Json& metrics) = 0;
  virtual void report_progress(double progress, std::int64_t steps_completed) = 0;
  virtual void report_checkpoint(const CheckpointRecord& record) = 0;
  /// Stores an entry of media, or replaces the one with its name and step. Entries may overtake other
  /// reports, but are stored before a checkpoint that is reported after them. Discards it by default.
  virtual void report_media(const MediaRecord& /*record*/) {}
  /// Returns a new request for a trace, once. Cheap enough to call for every batch.
  virtual std::optional<ProfileRequest> take_profile_request() { return std::nullopt; }
  /// Sends the progress of the request that was taken last.
  virtual void report_profile(const ProfileProgress& /*progress*/) {}
  /// Refuses requests for traces with this reason; "" accepts them, as at the start.
  virtual void refuse_profiles(const std::string& /*reason*/) {}
  /// Reports that the trial's hyperparameters cannot work.
  virtual void report_invalid_hp() = 0;
  /// True when the cluster preempts the trial: save at the next batch boundary and exit. Cheap enough to call
  /// for every batch.
  virtual bool should_preempt() const = 0;
  /// True when many reports are unsent. Dispensable reports should then be omitted.
  virtual bool backlogged() const { return false; }
  /// Reports that the checkpoint is saved and the process is about to exit.
  virtual void acknowledge_preemption() = 0;
  /// Ends a trial outside the cluster. Must be the last report, made when all others have been flushed.
  /// Without effect on a cluster, where the exit of the process ends the run.
  virtual void report_end(bool /*failed*/, const std::string& /*message*/) {}
  /// Blocks until all reports are durable. Returns false when `timeout` expires first.
  virtual bool flush(std::chrono::seconds timeout) = 0;
};

/// A client that prints each report as a line, and writes media to files below `media_dir`. SIGINT and
/// SIGTERM request preemption; a second signal kills the process.
std::unique_ptr<Client> make_local_client(std::string media_dir = "media");
/// A client that reports nothing, for ranks other than the chief. With `takes_signals`, signals request
/// preemption as above, so the process survives until the chief's decision reaches it.
std::unique_ptr<Client> make_quiet_client(bool takes_signals);

/// Address and credentials of the cluster client.
struct ClusterAddress {
  std::string master;  ///< host:port, or https://host:port
  std::string allocation_id;
  /// Credentials of the trial's allocation.
  std::string session_token;
  std::int32_t trial_id = 0;
  std::int32_t run = 0;
  /// Outside the cluster: token of the trial's owner, in place of the allocation's. Such a client sends
  /// keep-alives at the interval the master requires. When the master ends the trial, it requests preemption
  /// instead of ending the process.
  std::string user_token;
  /// Certificates that the master's certificate is checked against; "": those of the environment.
  std::string cert_file;
  /// Called one or more times when should_preempt() becomes true, on a thread of the client; must return
  /// quickly. May be null.
  void (*preempted)() = nullptr;
};

/// Request to create an experiment with this process as its trial.
struct DetachedRequest {
  std::string master, user;  ///< "": the defaults of the det command
  std::string config;        ///< YAML
  std::string request_id;
};
/// Result of a DetachedRequest.
struct DetachedTrial {
  std::string master;  ///< host:port, or https://host:port
  std::int64_t experiment_id = 0, trial_id = 0;
  std::string experiment_config;  ///< JSON, with defaults filled in
  std::string error;              ///< reason of the failure; "" on success
};

/// Reports a damaged checkpoint of this trial to the master. Returns the uuid to start from instead, "" for a
/// start from scratch, or an error when there is no alternative. Blocks until the master answers.
using FallBack = std::function<Result<std::string>(const std::string& uuid, const std::string& reason)>;

}  // namespace det

/// Creates a client. Exported by libdet_cluster.so. The caller owns the result.
extern "C" det::Client* det_make_cluster_client(const det::ClusterAddress* address);
using DetMakeClusterClient = det::Client* (*)(const det::ClusterAddress*);
/// Logs in as the det command does, creates the experiment and returns a client of its trial. Exported by
/// libdet_cluster.so. The caller owns the result; null with the reason in trial->error.
extern "C" det::Client* det_make_detached_client(const det::DetachedRequest* request,
                                                 det::DetachedTrial* trial);
using DetMakeDetachedClient = det::Client* (*)(const det::DetachedRequest*, det::DetachedTrial*);
/// FallBack for a process of a cluster. Exported by libdet_cluster.so.
extern "C" void det_fall_back(const det::ClusterAddress* address, const std::string* uuid,
                              const std::string* reason, det::Result<std::string>* instead);
using DetFallBack = void (*)(const det::ClusterAddress*, const std::string*, const std::string*,
                             det::Result<std::string>*);
