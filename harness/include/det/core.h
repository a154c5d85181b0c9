// The Core API: metrics, checkpoints, preemption and rank information for a training loop of any kind.
// Independent of LibTorch; link det::core.
//
//   det::CoreContext core = det::init_core();  // on a cluster from its environment, else local
//   for (int step = 1; step <= steps; ++step) {
//     …
//     core.train().report_training_metrics(step, {{"loss", loss}});
//     core.train().report_progress(double(step) / steps);
//     if (core.preempt().should_preempt()) {
//       core.checkpoint().store_path({{"steps_completed", step}},
//                                    [&](const std::string& directory) { save(directory); });
//       return 0;
//     }
//   }
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "det/distributed.h"
#include "det/media.h"

namespace det {

/// Identity of this process and its task.
struct CoreInfo {
  bool on_cluster = false;  ///< started by an agent
  bool detached = false;    ///< init_core() created the experiment; this process runs outside the cluster
  std::int64_t experiment_id = 0, trial_id = 0;  ///< 0 without a cluster
  std::int32_t run = 0;  ///< number of this start of the trial, from 1; 0 without a cluster
  /// Seed for all randomness of the trial; derived from the experiment's seed on a cluster.
  std::int64_t trial_seed = 0;
  Json hparams = Json::object(), experiment_config = Json::object();
  std::string latest_checkpoint;  ///< uuid to resume from; "" for a start from scratch
  /// Directory of checkpoints, one subdirectory per uuid. With a bucket: the local staging directory.
  std::string checkpoint_storage;
  std::string master;  ///< host:port, or https://host:port; "" without a cluster
  std::string cluster_id, agent_id, task_id, allocation_id;  ///< "" without a cluster
  /// Device indices that the agent assigned to this task.
  std::vector<int> slot_ids;
};

/// How should_preempt() coordinates the ranks.
enum class PreemptMode {
  kWorkersAskChief,  ///< every rank makes the same calls; all return the chief's result
  kChiefOnly,        ///< only the chief may call should_preempt()
};
/// How the ranks of one machine share a checkpoint download.
enum class DownloadMode {
  kLocalWorkersShareDownload,  ///< every rank of a machine makes the call; local rank 0 downloads
  kNoSharedDownload,           ///< any rank may call alone
};
/// Reason for a trial to end before its full length.
enum class ExitedReason { kInvalidHP };

class CoreState;

/// Reports metrics and progress to the master.
///
/// Calls only enqueue: a background thread sends reports in order and keeps them through an outage of the
/// master. A call blocks only while 64 MiB of reports are unsent. On ranks other than the chief nothing is
/// sent. Used on the context's thread.
class TrainContext {
 public:
  explicit TrainContext(CoreState& state) : state_(state) {}
  /// Reports metrics of the group "training" after `steps_completed` steps. `metrics` is an object of name →
  /// number; NaN and infinities are allowed. Limits: 1000 names of 1 to 256 printable ASCII characters, 1 MiB
  /// in total. All metrics of a group and step must be reported in one call: repeating the newest report is
  /// ignored, and different metrics for its step throw std::invalid_argument, as do values that the master
  /// would reject.
  void report_training_metrics(std::int64_t steps_completed, const Json& metrics);
  /// Reports metrics of the group "validation", which searches and checkpoint policies use. A null value
  /// throws std::invalid_argument.
  void report_validation_metrics(std::int64_t steps_completed, const Json& metrics);
  /// Reports metrics of a group of any name: 1 to 128 characters without ".", and none of the system
  /// profiler's groups (gpu, cpu, memory, disk, network).
  void report_metrics(const std::string& group, std::int64_t steps_completed, const Json& metrics);
  /// Reports the fraction of training that is complete. `progress` is in [0, 1], otherwise
  /// std::invalid_argument. `steps_completed` < 0 stands for the step of the newest metrics. A report with
  /// fewer steps than an earlier one is ignored, so progress never moves back.
  void report_progress(double progress, std::int64_t steps_completed = -1);
  /// Reports an image (det/media.h). An entry replaces the one with its name and step, and has at most 2 MiB;
  /// a trial has at most 20,000 entries and 2 GiB. `name`: 1 to 128 letters, digits, spaces and _ - . =;
  /// slashes separate groups. Invalid arguments throw std::invalid_argument. The same holds for the calls
  /// below.
  void report_image(std::int64_t steps_completed, const std::string& name, const Image& image,
                    const std::string& caption = "");
  /// Reports the distribution of values, in 1 to 1000 bins of equal width. At least one must be finite.
  void report_histogram(std::int64_t steps_completed, const std::string& name,
                        const std::vector<double>& values, int bins = 64);
  /// Reports UTF-8 text.
  void report_text(std::int64_t steps_completed, const std::string& name, const std::string& text);
  /// Reports a table: 1 to 100 columns, and at most 10,000 rows, a list of lists of strings and numbers.
  void report_table(std::int64_t steps_completed, const std::string& name,
                    const std::vector<std::string>& columns, const Json& rows);
  /// Reports the content of a file, for download. Throws std::runtime_error when it cannot be read.
  void report_file(std::int64_t steps_completed, const std::string& name, const std::string& path,
                   const std::string& caption = "");
  /// Reports that the trial ends early for `reason`. The process should then exit without saving further
  /// checkpoints.
  void report_early_exit(ExitedReason reason);

 private:
  CoreState& state_;
};

/// Location of a stored checkpoint: its directory, or its name in the bucket.
struct StoredCheckpoint {
  std::string path, uuid;
};

/// Stores and restores checkpoints. A checkpoint is a directory in the checkpoint storage, or the objects
/// below a uuid in a bucket. It appears atomically, complete or not at all, and contains a manifest with
/// sizes and SHA-256 digests. `metadata` must contain "steps_completed", an integer >= 0.
///
/// All calls block until the files are transferred. Failures of the storage throw std::runtime_error naming
/// the file; invalid arguments throw std::invalid_argument; calls on the wrong rank throw std::logic_error.
class CheckpointContext {
 public:
  explicit CheckpointContext(CoreState& state) : state_(state) {}
  /// Copies `directory` into a new checkpoint, reports it, and returns its uuid.
  ///
  /// Without `shard` only the chief may call it. With `shard` every rank must call it, and the files and
  /// metadata of all ranks are merged: "steps_completed" must come from at least one rank; a file name used
  /// by several ranks must have the same content on each, and a metadata key the same value, otherwise every
  /// rank throws. Ranks that share a directory contribute it once. A rank without files passes "".
  std::string upload(const std::string& directory, const Json& metadata, bool shard = false);
  /// As upload(), but without a copy: `write` creates the files in an empty directory that it receives. An
  /// exception of `write` is rethrown (on the other ranks as std::runtime_error), and no checkpoint is
  /// created.
  StoredCheckpoint store_path(const Json& metadata,
                              const std::function<void(const std::string& directory)>& write,
                              bool shard = false);
  /// Downloads the checkpoint if necessary, verifies its manifest, and calls `read` with its directory.
  /// `read` must not modify the directory.
  void restore_path(const std::string& uuid, const std::function<void(const std::string& directory)>& read,
                    DownloadMode mode = DownloadMode::kLocalWorkersShareDownload);
  /// Verifies the checkpoint and copies its files, with manifest and metadata, to `directory`.
  void download(const std::string& uuid, const std::string& directory,
                DownloadMode mode = DownloadMode::kLocalWorkersShareDownload);
  /// Returns the metadata that the checkpoint was stored with. Any rank may call it.
  Json get_metadata(const std::string& uuid);
  /// Deletes a checkpoint without a master. On a cluster and in detached mode it throws std::logic_error: the
  /// master's database would still list the checkpoint, so delete it there.
  void delete_(const std::string& uuid);

 private:
  CoreState& state_;
};

/// Preemption of the trial by the cluster.
class PreemptContext {
 public:
  explicit PreemptContext(CoreState& state) : state_(state) {}
  /// Returns true when the cluster requests the slots back, or without a cluster after an interrupt (SIGINT,
  /// SIGTERM): the program should save a checkpoint and exit with 0. Once true, it stays true. Cheap with one
  /// process; with several and kWorkersAskChief it is a broadcast.
  ///
  /// `auto_ack` acknowledges the request when it is first returned. A process that exits with 0 after an
  /// acknowledgment is restarted later; one that exits with 0 without it is considered complete. Throws
  /// std::logic_error when a rank other than the chief calls it with PreemptMode::kChiefOnly.
  bool should_preempt(bool auto_ack = true);
  /// Acknowledges preemption, for `auto_ack` = false. Idempotent. Throws std::logic_error unless
  /// should_preempt() has returned true.
  void acknowledge_preemption_signal();

 private:
  CoreState& state_;
};

/// Samples the utilization of the machine in a background thread and reports it as metrics of these groups.
/// On a cluster and in detached mode it is on from the beginning, with a report every 10 s.
///
///   gpu      gpu_util.I (percent), gpu_free_memory.I (bytes), gpu_power.I (watts), gpu_temperature.I (°C),
///            for each device I visible to the process
///   cpu      cpu_util_simple (percent of all cores)
///   memory   memory_free (bytes)
///   disk     disk_iops (per second), disk_throughput_read, disk_throughput_write (bytes per second),
///            disk_util (percent used of the file system of "/")
///   network  net_throughput_sent, net_throughput_recv (bytes per second, without the loopback interface)
///
/// A report is the mean of its samples. Its step is the time in seconds since 1970, so that the reports of
/// different runs of a trial never overlap. Only the chief reports, and only its own machine.
class ProfilerContext {
 public:
  explicit ProfilerContext(CoreState& state) : state_(state) {}
  /// Starts sampling every `sampling_interval` seconds, with one report per `samples_per_report` samples. The
  /// interval must be in (0, 86400] and the number of samples at least 1, otherwise std::invalid_argument. No
  /// effect after an earlier call without off().
  void on(double sampling_interval = 1, int samples_per_report = 10);
  /// Stops sampling. No effect when already off.
  void off();

 private:
  CoreState& state_;
};

/// The Core API of one process. There is one per process, used on one thread.
class CoreContext {
 public:
  explicit CoreContext(std::unique_ptr<CoreState> state);
  CoreContext(CoreContext&&) noexcept;
  /// Stops the profiler and blocks, for at most a week, until all reports are durable. In detached mode it
  /// then ends the trial: in ERROR during stack unwinding or after fail(), else COMPLETED. The same happens
  /// when an exception leaves main() or a thread (exit code 1, or 82 when a checkpoint found no space) and
  /// when the program calls exit(), with a status other than 0 in ERROR.
  ~CoreContext();

  TrainContext& train() { return train_; }
  CheckpointContext& checkpoint() { return checkpoint_; }
  PreemptContext& preempt() { return preempt_; }
  ProfilerContext& profiler() { return profiler_; }
  DistributedContext& distributed();
  const CoreInfo& info() const;
  /// Blocks until all reports are durable. Returns false when `timeout` expires first.
  bool flush(std::chrono::seconds timeout);
  /// Detached mode: makes the destructor end the trial in ERROR with this message. Intended for programs that
  /// catch their exceptions inside the context's lifetime.
  void fail(const std::string& message);

 private:
  std::unique_ptr<CoreState> state_;
  TrainContext train_;
  CheckpointContext checkpoint_;
  PreemptContext preempt_;
  ProfilerContext profiler_;
  int exceptions_;  // std::uncaught_exceptions() at construction
};

/// Settings of detached mode: a program started by hand on any machine reports to a master as an experiment
/// with one trial. The master assigns it no slots. It marks the trial ERROR after `detached_limit` (five
/// minutes) without a sign of life; restarts of the master are tolerated. When a user ends the experiment,
/// should_preempt() returns true within a tenth of that limit.
struct DetachedConfig {
  std::string master;  ///< "": DET_MASTER, else localhost:8080, as for the det command
  /// User name. The login is DET_USER_TOKEN, DET_USER with DET_PASS, or that of `det user login`, in this
  /// order; "" selects the user of the last login.
  std::string user;
  std::string name, description;  ///< name "": generated by the master
  std::vector<std::string> labels;
  Json hparams = Json::object(), data = Json::object();
  /// Metric of validation reports; its best value is shown.
  std::string searcher_metric = "validation_loss";
  bool smaller_is_better = true;
  /// Directory of checkpoints. "" selects the master's default storage, which must be reachable from this
  /// machine.
  std::string checkpoint_storage;
};

/// Arguments of init_core().
struct CoreOptions {
  std::string config_file;  ///< experiment configuration in YAML; ignored on a cluster
  /// Directory of checkpoints without a cluster. "" selects the configuration's storage, else ./checkpoints.
  std::string checkpoint_dir;
  PreemptMode preempt_mode = PreemptMode::kWorkersAskChief;
  /// The ranks. Null: created from the variables that launchers set (see rank_info_from_environment()).
  std::shared_ptr<DistributedContext> distributed;
  /// Enables detached mode. Ignored on a cluster, where the same program runs as a trial.
  std::optional<DetachedConfig> detached;
};

/// Creates the context. On a cluster it reads the process's identity from the environment, and the chief
/// connects to the master; elsewhere reports are printed, and an interrupt requests preemption. Collective:
/// every rank must call it. Throws std::runtime_error naming the variable or file that is wrong, or with the
/// reason why the master rejected a detached experiment.
CoreContext init_core(CoreOptions options = {});

/// Earlier names of the Core API. Removed after release 0.1.
namespace core {
using det::CheckpointContext, det::DetachedConfig, det::DownloadMode, det::ExitedReason, det::PreemptContext,
    det::PreemptMode, det::ProfilerContext, det::StoredCheckpoint, det::TrainContext;
using Context = CoreContext;
using Info = CoreInfo;
using Options = CoreOptions;
inline Context init(Options options = {}) { return init_core(std::move(options)); }
}  // namespace core

}  // namespace det
