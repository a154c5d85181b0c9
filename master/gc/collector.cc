#include "master/gc/collector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/storage/bucket_checkpoints.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/media.h"
#include "master/gc/policy.h"

namespace det::gc {
namespace {

constexpr std::size_t kQueue = 1 << 14;
constexpr int kAtOnce = 256;
constexpr int kStorages = 100;

/// Few attempts and a short time-out: a failed removal is retried later anyway.
constexpr storage::BucketOptions kPatience{.attempts = 3, .connect_timeout = std::chrono::seconds(5)};

storage::Done perform_in_bucket(const storage::StoragePolicy& policy, const std::string& json,
                                const std::vector<std::string>& remove, bool list) {
  const auto storage = parse_json(json);
  const auto location = storage ? policy.bucket_of(*storage) : tl::unexpected(storage.error());
  if (location) return storage::perform(storage::Bucket(*location, kPatience), remove, list);
  storage::Done done;
  done.error = location.error().message;
  return done;
}

/// Loads the input of the retention policy for an experiment. kNotFound.
Result<Retention> load_retention(db::Pool& pool, ExperimentId id) {
  TRY_ASSIGN(const db::KeepRow keep, db::get_keep(pool, id));
  Retention input{.keep = {keep.experiment_best, keep.trial_best, keep.trial_latest, keep.smaller_is_better}};
  TRY_ASSIGN(const auto trials, db::list_keep_trials(pool, id));
  for (const db::KeepTrial& trial : trials) {
    if (trial.open) input.open.insert(trial.id);
    if (trial.resumable && !trial.latest.value.empty()) input.needed.insert(trial.latest);
  }
  TRY_ASSIGN(const auto checkpoints, db::list_keep_checkpoints(pool, id));
  for (const db::KeepCheckpoint& row : checkpoints) {
    // NaN compares with nothing, so the policy must not rank by it.
    const bool ranked = row.metric && !std::isnan(*row.metric);
    input.checkpoints.push_back({.uuid = row.uuid,
                                 .trial = row.trial,
                                 .steps = row.steps,
                                 .metric = ranked ? row.metric : std::nullopt,
                                 .damaged = row.damaged});
  }
  return input;
}

/// Returns the names found in a storage that belong to no run that could still report them.
Result<std::vector<std::string>> orphans_of(db::Pool& pool, const std::string& cluster,
                                            const storage::Done& seen) {
  std::vector<db::OnDisk> found;
  for (const storage::Found& one : seen.found)
    found.push_back({one.name, one.owner.cluster == cluster, one.owner.trial, one.owner.run});
  if (found.empty()) return std::vector<std::string>();
  return db::orphans_among(pool, found);
}

/// Removes dead uploads of an experiment that has ended. Later sweeps no longer search its bucket. That of a
/// detached one may be out of reach.
Status remove_dead_uploads(db::Pool& pool, const storage::StoragePolicy& policy, const std::string& cluster,
                           ExperimentId id) {
  TRY_ASSIGN(const auto experiment, db::get_experiment(pool, id));
  TRY_ASSIGN(const Json config, parse_json(experiment.config, {.bytes = 16 << 20, .depth = 64}));
  const Json* storage = find_path(config, "checkpoint_storage");
  if (storage == nullptr || !storage::is_bucket(*storage)) return {};
  const storage::Done seen = perform_in_bucket(policy, storage->dump(), {}, true);
  TRY_ASSIGN(const auto orphans, orphans_of(pool, cluster, seen));
  const storage::Done done = perform_in_bucket(policy, storage->dump(), orphans, false);
  const std::string& error = seen.error.empty() ? done.error : seen.error;
  if (error.empty()) return {};
  if (!experiment.detached) return fail(Code::kFailedPrecondition, error);
  log::warn("dead uploads of a detached experiment could not be deleted",
            {{"experiment", id}, {"reason", error}});
  return {};
}

}  // namespace

/// A storage; for a local directory, also the agent that wrote the files.
struct Collector::Storage {
  storage::Root root;
  std::string name;     ///< for messages
  bool shared = false;  ///< all machines with the directory see the same files
  AgentId writer;
  /// Storage configuration as JSON for a bucket, which the master accesses itself; else "".
  std::string bucket;
  std::string refusal;  ///< why the storage may not be accessed; "" if it may

  static Storage of(const storage::StoragePolicy& policy, const db::Marked& marked) {
    const Json storage = parse_json(marked.storage).value_or(Json());
    Storage place;
    if (storage::is_bucket(storage)) {
      const auto at = policy.bucket_of(storage);
      place.shared = true;
      place.bucket = marked.storage;
      place.name = at ? at->name() : "a bucket";
      if (!at) place.refusal = at.error().message;
      return place;
    }
    place.shared = storage.is_object() && storage.value("type", Json()) == "shared_fs";
    place.name = storage::directory_of(storage);
    const auto root = policy.root_of(storage);
    if (!root) {
      place.refusal = root.error().message;
      return place;
    }
    place.root = *root;
    place.writer = marked.writer;
    return place;
  }
  auto operator<=>(const Storage&) const = default;
};

Collector::Collector(db::Pool& pool, CollectorOptions options, StorageAgents agents)
    : pool_(pool),
      options_(std::move(options)),
      agents_(std::move(agents)),
      worker_(1, kQueue, options_.watch ? loop::Workers::Job([this] { tick(); }) : nullptr, options_.pause) {}

void Collector::changed(const loop::Change& change) {
  using Kind = loop::Change::Kind;
  // Only an end, a new checkpoint or a new metric can make checkpoints superfluous.
  const bool ended = change.name == "COMPLETED" || change.name == "CANCELED" || change.name == "ERROR";
  if (change.experiment.value == 0) return;
  if (change.kind == Kind::kCheckpoint || change.kind == Kind::kMetrics ||
      (ended && (change.kind == Kind::kTrial || change.kind == Kind::kExperiment))) {
    look_at(change.experiment);
  }
}

void Collector::look_at(ExperimentId id) {
  if (!options_.watch) return;
  // A full queue degrades to a check of all experiments.
  if (!worker_.try_post([this, id] { dirty_.insert(id); })) all_ = true;
}

void Collector::tick() {
  // Decided before the checks: their failures must not delay a retry that is due.
  const bool due = retry_at_ && mono_now() >= *retry_at_;
  if (all_.exchange(false)) {
    const auto ids = db::experiments_with_checkpoints(pool_);
    if (!ids) all_ = true;
    if (ids) dirty_.insert(ids->begin(), ids->end());
  }
  // Most changed experiments have no checkpoints: one query here replaces three for each.
  if (!dirty_.empty()) {
    if (const auto some = db::experiments_with_checkpoints(pool_, dirty_))
      dirty_ = {some->begin(), some->end()};
  }
  for (int i = 0; i < kAtOnce && !dirty_.empty(); ++i) {
    const ExperimentId id = *dirty_.begin();
    const Status done = collect(id);
    dirty_.erase(id);
    if (done) continue;
    marked_ = true;
    note_failure(done);
    // Marked checkpoints wait for their storage; any other failure repeats the check of the experiment.
    if (done.error().code != Code::kFailedPrecondition) later_.insert(id);
    break;
  }
  if (due || !retry_at_) dirty_.merge(later_);
  if (marked_ && (due || !retry_at_)) {
    const Status done = finish_marked();
    marked_ = !done;
    if (!done) note_failure(done);
    if (done) retry_at_.reset(), wait_ = Duration(0), last_trouble_.clear();
  }
  if (const MonoTime now = mono_now(); !sweep_at_ || now >= *sweep_at_) {
    // The first sweep waits a sixtieth of the period, so that it does not slow the start.
    const bool first = !sweep_at_;
    sweep_at_ = now + (first ? options_.sweep / 60 : options_.sweep);
    if (first) return;
    const auto swept = sweep();
    if (!swept) log::warn("search for orphaned checkpoints failed", {{"reason", swept.error().message}});
  }
}

void Collector::note_failure(const Status& status) {
  // New failures of one storage must not delay the next retry of the others.
  const MonoTime now = mono_now();
  if (!retry_at_ || now >= *retry_at_) {
    wait_ = std::clamp(wait_ * 2, options_.retry, options_.retry * 20);
    retry_at_ = now + wait_;
  }
  if (status.error().message != last_trouble_)
    log::warn("checkpoints could not be deleted; retrying", {{"reason", status.error().message}});
  last_trouble_ = status.error().message;
}

Status Collector::collect(ExperimentId id) {
  const auto retention = load_retention(pool_, id);
  if (!retention && retention.error().code == Code::kNotFound) return {};
  TRY(retention);
  std::vector<CheckpointId> gone = superfluous(*retention);
  if (gone.empty()) return {};
  // Other experiments may start from these checkpoints.
  TRY_ASSIGN(const auto starts, db::start_checkpoints(pool_));
  std::erase_if(gone, [&](const CheckpointId& uuid) { return starts.contains(uuid); });
  // Marks first: a crash after this point is finished by the next start.
  TRY_ASSIGN(const auto marked, db::mark_for_removal(pool_, gone));
  return remove(marked);
}

Status Collector::remove(const std::vector<CheckpointId>& uuids) {
  if (uuids.empty()) return {};
  TRY_ASSIGN(const auto marked, db::marked_among(pool_, uuids));
  return remove_marked(marked);
}

Status Collector::remove_all(ExperimentId id) {
  TRY(db::mark_all_for_removal(pool_, id));
  TRY_ASSIGN(auto marked, db::marked_of(pool_, id));
  // A trial outside the cluster may have written to a place that no machine of the cluster can reach.
  const auto inside =
      std::partition(marked.begin(), marked.end(), [](const auto& one) { return one.writer.value.empty(); });
  if (const Status done = remove_marked({marked.begin(), inside}); !done)
    log::warn("files of a detached trial could not be deleted",
              {{"experiment", id}, {"reason", done.error().message}});
  TRY(remove_marked({inside, marked.end()}));
  // Best effort: the database has no record of these files.
  const auto policy = options_.storages->get();
  std::set<Storage> places;
  for (const db::Marked& one : marked) places.insert(Storage::of(*policy, one));
  // TensorBoard files exist without a checkpoint, too.
  if (places.empty() || !places.begin()->shared) {
    TRY_ASSIGN(const auto newest, db::storage_of(pool_, id));
    if (newest) places.insert(Storage::of(*policy, *newest));
  }
  TRY(remove_dead_uploads(pool_, *options_.storages->get(), options_.cluster_id, id));
  TRY(remove_media(id));
  for (const Storage& place : places) {
    if (!place.bucket.empty()) continue;
    std::vector<CheckpointId> ignored;
    if (const Status done = remove_at(place, storage::tensorboard_names(options_.cluster_id, id), ignored);
        !done)
      log::warn("TensorBoard files could not be deleted",
                {{"experiment", id}, {"reason", done.error().message}});
  }
  return {};
}

Status Collector::remove_media(ExperimentId id) {
  TRY_ASSIGN(const bool any, db::has_media(pool_, id));
  if (!any) return {};
  return remove_below(id, {storage::media_name(options_.cluster_id, id)});
}

Status Collector::remove_tensorboard(ExperimentId id) {
  return remove_below(id, storage::tensorboard_names(options_.cluster_id, id));
}

Status Collector::remove_below(ExperimentId id, const std::vector<std::string>& names) {
  TRY_ASSIGN(const auto experiment, db::get_experiment(pool_, id));
  TRY_ASSIGN(const Json config, parse_json(experiment.config, {.bytes = 16 << 20, .depth = 64}));
  const Json* storage = find_path(config, "checkpoint_storage");
  if (storage == nullptr) return {};
  const auto place =
      Storage::of(*options_.storages->get(),
                  {.uuid = {}, .experiment = id, .storage = dump_json(*storage), .writer = {}});
  std::vector<CheckpointId> gone;
  Status done = remove_at(place, names, gone);
  // What the master sees to be missing need not be removed on an agent.
  const bool missing = std::none_of(names.begin(), names.end(), [&](const std::string& name) {
    return path_exists(place.root.path() + "/" + name);
  });
  if (!done && place.refusal.empty() && path_exists(place.root.path()) && missing) done = {};
  return done;
}

Status Collector::finish_marked() {
  Status first;
  for (CheckpointId after;;) {
    TRY_ASSIGN(const auto marked, db::marked_for_removal(pool_, after, kAtOnce));
    if (marked.empty()) return first;
    after = marked.back().uuid;
    // Continues after a failure: other storages may be reachable.
    if (const Status done = remove_marked(marked); !done && first) first = done;
  }
}

Status Collector::remove_marked(const std::vector<db::Marked>& marked) {
  const auto policy = options_.storages->get();
  std::map<Storage, std::vector<std::string>> places;
  for (const db::Marked& one : marked) places[Storage::of(*policy, one)].push_back(one.uuid.value);
  Status first;
  for (auto& [place, names] : places) {
    std::vector<CheckpointId> gone;
    const Status done = remove_at(place, std::move(names), gone);
    if (!done && first) first = done;
    if (gone.empty()) continue;
    TRY(db::set_removed(pool_, gone));
    log::info("deleted checkpoints", {{"count", gone.size()}, {"storage", place.name}});
  }
  return first;
}

/// A missing file counts as removed if its writer reports it missing, or for shared storage any machine that
/// has the directory.
Status Collector::remove_at(const Storage& place, std::vector<std::string> names,
                            std::vector<CheckpointId>& gone) const {
  if (!place.refusal.empty()) return fail(Code::kFailedPrecondition, place.refusal);
  std::string why = "no agent is connected that has it";
  const auto take = [&](const std::vector<std::string>& done) {
    for (const std::string& name : done) {
      gone.emplace_back(name);
      std::erase(names, name);
    }
  };
  if (!place.bucket.empty() || path_exists(place.root.path())) {
    const storage::Done done = place.bucket.empty()
                                   ? storage::perform({.root = place.root, .remove = names, .list = false})
                                   : perform_in_bucket(*options_.storages->get(), place.bucket, names, false);
    take(done.removed);
    if (!done.error.empty()) why = done.error;
    if (place.shared) take(done.absent);
  }
  for (const AgentId& agent : names.empty() ? std::vector<AgentId>() : agents_for(place)) {
    const auto done = agents_.ask(agent, {.root = place.root, .remove = names, .list = false});
    if (done) take(done->removed);
    if (done && (place.shared || agent == place.writer)) take(done->absent);
    const std::string error = done ? done->error : done.error().message;
    if (!error.empty()) why = "agent " + agent.value + ": " + error;
    if (names.empty()) break;
  }
  if (names.empty()) return {};
  return fail(Code::kFailedPrecondition,
              "the files of " + std::to_string(names.size()) + " checkpoints in " +
                  (place.name.empty() ? "a storage that is not known" : place.name) +
                  " cannot be reached: " + why);
}

std::vector<AgentId> Collector::agents_for(const Storage& place) const {
  if (!agents_.connected || !place.bucket.empty()) return {};
  std::vector<AgentId> agents = agents_.connected();
  const auto writer = std::find(agents.begin(), agents.end(), place.writer);
  if (writer != agents.end()) {
    std::rotate(agents.begin(), writer, writer + 1);
    // The writer is authoritative, so no other agent is needed.
    agents.resize(1);
  } else if (!place.shared) {
    agents.clear();
  }
  return agents;
}

Result<std::size_t> Collector::sweep() {
  TRY_ASSIGN(const auto storages, db::storages_in_use(pool_, kStorages));
  const auto policy = options_.storages->get();
  std::set<Storage> places;
  for (const db::Marked& one : storages) places.insert(Storage::of(*policy, one));
  std::size_t count = 0;
  for (const Storage& place : places) {
    if (!place.refusal.empty()) continue;
    storage::Done seen;
    if (!place.bucket.empty()) {
      seen = perform_in_bucket(*policy, place.bucket, {}, true);
      if (!seen.error.empty())
        log::warn("storage could not be searched", {{"storage", place.name}, {"reason", seen.error}});
    } else if (path_exists(place.root.path())) {
      seen = storage::perform({.root = place.root, .remove = {}, .list = true});
    } else {
      for (const AgentId& agent : agents_for(place)) {
        // For shared storage the first agent with results is enough.
        auto answer = agents_.ask(agent, {.root = place.root, .remove = {}, .list = true});
        if (answer && answer->error.empty()) seen = std::move(*answer);
        if (!seen.found.empty()) break;
      }
    }
    TRY_ASSIGN(const auto orphans, orphans_of(pool_, options_.cluster_id, seen));
    if (orphans.empty()) continue;
    std::vector<CheckpointId> gone;
    const Status done = remove_at(place, orphans, gone);
    count += gone.size();
    log::info("deleted orphaned checkpoints", {{"count", gone.size()}, {"storage", place.name}});
    if (!done) log::warn("orphaned checkpoints could not be deleted", {{"reason", done.error().message}});
  }
  return count;
}

}  // namespace det::gc
