// Owns the Core API: what a training loop of any kind needs of the platform (metrics, checkpoints,
// preemption, the other ranks, who am I). No LibTorch: link det::core.
//
//   det::core::Context core = det::core::init();   // on a cluster from the environment, else local
//   for (int step = 1; step <= steps; ++step) {
//     …
//     core.train().report_training_metrics(step, {{"loss", loss}});
//     core.train().report_progress(double(step) / steps);
//     if (core.preempt().should_preempt()) {
//       core.checkpoint().store_path({{"steps_completed", step}}, [&](const std::string& dir) { save(dir);
//       }); return 0;
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
#include <vector>

#include "det/distributed.h"

namespace det::core {

/// Who this process is and what it was asked to train.
struct Info {
  bool on_cluster = false;  ///< an agent started this process
  bool detached = false;    ///< init() made the experiment: this process is its trial, outside the cluster
  std::int64_t experiment_id = 0, trial_id = 0;  ///< 0 without a cluster
  std::int32_t run = 0;  ///< how many times this trial has been started, from 1; 0 without a cluster
  std::int64_t trial_seed = 0;
  Json hparams = Json::object(), experiment_config = Json::object();
  std::string latest_checkpoint;   ///< uuid from which to go on; "" from the beginning
  std::string checkpoint_storage;  ///< directory in which checkpoints lie, one folder a uuid; of a bucket: on
                                   ///< their way
  std::string master;              ///< host:port, or https://host:port; "" without a cluster
  std::string cluster_id, agent_id, task_id, allocation_id;  ///< likewise
  std::vector<int> slot_ids;
};

enum class PreemptMode {
  kWorkersAskChief,  ///< every rank calls should_preempt() equally often, and all get the chief's answer
  kChiefOnly,        ///< only the chief may call it
};
enum class DownloadMode {
  kLocalWorkersShareDownload,  ///< every rank of a machine makes the call; the first does the work
  kNoSharedDownload,           ///< any rank may call alone
};
/// Why a trial ends before its length.
enum class ExitedReason { kInvalidHP };

class State;

/// Reports. They are taken over at once and sent by a thread of their own, in order, also past an outage of
/// the master; a call waits only when 64 MiB are unsent. On other ranks than the chief they do nothing.
class TrainContext {
 public:
  explicit TrainContext(State& state) : state_(state) {}
  /// `metrics` is an object name → number; NaN and infinities may be. Names are 1 to 256 characters of
  /// printable ASCII, at most 1000. Everything of one group at one step goes in one call: a second, different
  /// report of the step before throws std::invalid_argument, as does anything else that the master would
  /// refuse.
  void report_training_metrics(std::int64_t steps_completed, const Json& metrics);
  /// What a search and checkpoint policies look at. A null value throws std::invalid_argument.
  void report_validation_metrics(std::int64_t steps_completed, const Json& metrics);
  /// A group of one's own: 1 to 128 characters without ".", not one of the profiler's (gpu, cpu, memory,
  /// disk, network).
  void report_metrics(const std::string& group, std::int64_t steps_completed, const Json& metrics);
  /// `progress` in [0, 1]. Progress never moves back: what has fewer steps than a report before is ignored.
  /// `steps_completed` < 0 is that of the newest metrics reported.
  void report_progress(double progress, std::int64_t steps_completed = -1);
  /// The process should save nothing more and leave.
  void report_early_exit(ExitedReason reason);

 private:
  State& state_;
};

struct StoredCheckpoint {
  std::string path, uuid;
};

/// Checkpoints: directories in the checkpoint storage, or names below a uuid in a bucket, that appear whole
/// or not at all, each with a manifest of SHA-256. `metadata` must hold "steps_completed", an integer >= 0.
/// Failures throw std::runtime_error naming the file; what cannot be asked for throws std::invalid_argument
/// or std::logic_error.
class CheckpointContext {
 public:
  explicit CheckpointContext(State& state) : state_(state) {}
  /// Copies `directory` into a new checkpoint and reports it. Returns its uuid.
  /// Without `shard` the chief calls it alone. With `shard` every rank calls it, with the same value of
  /// nothing but "steps_completed" required: files of all ranks come together (one name twice only with the
  /// same content; ranks that share a directory give it once), and so does metadata (one key with two values
  /// throws on every rank). A rank without files gives "".
  std::string upload(const std::string& directory, const Json& metadata, bool shard = false);
  /// The same without a copy: `write` fills the directory it is given. An exception of `write` is thrown on,
  /// on every rank, and leaves no checkpoint.
  StoredCheckpoint store_path(const Json& metadata,
                              const std::function<void(const std::string& directory)>& write,
                              bool shard = false);
  /// Checks the manifest, then calls `read` with the checkpoint's directory, which must not be changed.
  void restore_path(const std::string& uuid, const std::function<void(const std::string& directory)>& read,
                    DownloadMode mode = DownloadMode::kLocalWorkersShareDownload);
  /// Copies the files to `directory`.
  void download(const std::string& uuid, const std::string& directory,
                DownloadMode mode = DownloadMode::kLocalWorkersShareDownload);
  /// The metadata it was stored with. Any rank may call it.
  Json get_metadata(const std::string& uuid);
  /// Removes the files. Without a master only: its books would go on naming them, so it throws
  /// std::logic_error.
  void delete_(const std::string& uuid);

 private:
  State& state_;
};

class PreemptContext {
 public:
  explicit PreemptContext(State& state) : state_(state) {}
  /// True once the slots are wanted back (or, without a cluster, after an interrupt): save and leave with 0.
  /// Cheap with one process; with several an exchange between them. `auto_ack` acknowledges on the first
  /// true: a process that then leaves with 0 is run again, one that leaves with 0 and did not acknowledge is
  /// complete.
  bool should_preempt(bool auto_ack = true);
  /// Throws std::logic_error unless should_preempt() has said true.
  void acknowledge_preemption_signal();

 private:
  State& state_;
};

/// What the machine does while training: sampled by a thread, reported as metrics of the groups
///   gpu      gpu_util.I (percent), gpu_free_memory.I (bytes) of each device I that the process sees
///   cpu      cpu_util_simple (percent of all cores)
///   memory   memory_free (bytes)
///   disk     disk_iops (a second), disk_throughput_read, disk_throughput_write (bytes a second), disk_util
///   (percent
///            used of the file system of "/")
///   network  net_throughput_sent, net_throughput_recv (bytes a second, without the loopback)
/// A report is the mean of its samples; its step is the time in seconds since 1970, so that runs of a trial
/// never meet. Only the chief reports: of its machine.
class ProfilerContext {
 public:
  explicit ProfilerContext(State& state) : state_(state) {}
  /// Seconds > 0 and samples >= 1, else std::invalid_argument. No effect when on already.
  void on(double sampling_interval = 1, int samples_per_report = 10);
  void off();

 private:
  State& state_;
};

/// One per process, used on one thread.
class Context {
 public:
  explicit Context(std::unique_ptr<State> state);
  Context(Context&&) noexcept;
  /// Turns the profiler off and waits, a week at most, until everything reported is durable. In detached mode
  /// the trial then ends: in ERROR when an exception is on its way up, else COMPLETED.
  ~Context();

  TrainContext& train() { return train_; }
  CheckpointContext& checkpoint() { return checkpoint_; }
  PreemptContext& preempt() { return preempt_; }
  ProfilerContext& profiler() { return profiler_; }
  DistributedContext& distributed();
  const Info& info() const;
  /// Waits until everything reported is durable; false when `timeout` passed before.
  bool flush(std::chrono::seconds timeout);
  /// Detached mode: the trial ends in ERROR with this message, when the context goes. For programs that catch
  /// their exceptions before that.
  void fail(const std::string& message);

 private:
  std::unique_ptr<State> state_;
  TrainContext train_;
  CheckpointContext checkpoint_;
  PreemptContext preempt_;
  ProfilerContext profiler_;
  int exceptions_;  // that were on their way when this began
};

/// Detached mode: a program on any machine, started by hand, that reports to a master as an experiment with
/// one trial. The master gives it no slots, and marks it ERROR when it is silent for long (`unmanaged_limit`,
/// five minutes); a restart of the master does not matter. When a user ends the experiment, should_preempt()
/// says true within a tenth of that time.
struct DetachedConfig {
  std::string master;  ///< "" as the det command finds it: DET_MASTER, else localhost:8080
  std::string
      user;  ///< "" the last that logged in; else DET_USER_TOKEN, DET_USER with DET_PASS, or `det user login`
  std::string name, description;  ///< name "" is one that the master makes up
  std::vector<std::string> labels;
  Json hparams = Json::object(), data = Json::object();
  std::string searcher_metric = "validation_loss";  ///< of validation reports; the best of it is shown
  bool smaller_is_better = true;
  /// Directory of checkpoints; "" is the master's own default, which then must be reachable from here.
  std::string checkpoint_storage;
};

struct Options {
  std::string config_file;     ///< an experiment configuration in YAML; not read on a cluster
  std::string checkpoint_dir;  ///< without a cluster; "" is the configuration's storage, else ./checkpoints
  PreemptMode preempt_mode = PreemptMode::kWorkersAskChief;
  /// The ranks; null: made from the variables that launchers set.
  std::shared_ptr<DistributedContext> distributed;
  /// Present: detached mode. On a cluster it is ignored, so that the same program runs there as a trial.
  std::optional<DetachedConfig> detached;
};

/// On a cluster reads who this process is and (the chief) speaks with the master; else prints reports, and an
/// interrupt asks for preemption. Throws std::runtime_error naming the variable or file that is wrong, or why
/// the master did not take a detached experiment.
Context init(Options options = {});

}  // namespace det::core
