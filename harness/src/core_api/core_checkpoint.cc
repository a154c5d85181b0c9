// Checkpoints of the Core API, by one process or sharded over all ranks.
//
// Sharded checkpoints: the chief opens the checkpoint and broadcasts its uuid. Every rank gathers its file
// names, sizes and metadata. Each rank derives from the same data whether they are consistent and which rank
// contributes which file. The owners copy (or upload) their files, and the chief commits. Failures are
// exchanged at every stage, so that all ranks throw and none waits for another.
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/crypto/digest.h"
#include "common/storage/bucket_checkpoints.h"
#include "harness/src/base/or_throw.h"
#include "harness/src/base/storage_full.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/core_api/core_state.h"

namespace det {
namespace {

namespace fs = std::filesystem;

constexpr char kNotSaved[] = "the checkpoint was not saved";
constexpr char kManifestFile[] = "manifest.json", kMetadataFile[] = "metadata.json";
// Limits of the master for a checkpoint's record.
constexpr std::size_t kMaxMetadata = 1 << 20, kMaxNameBytes = 3 << 20;

using Files = std::map<std::string, std::int64_t>;  // relative path → bytes

/// Validates metadata. With `complete`, "steps_completed" must be present.
void check_metadata(const Json& metadata, bool complete) {
  if (!metadata.is_object()) throw std::invalid_argument("checkpoint metadata: expected an object");
  const auto steps = metadata.find("steps_completed");
  if (steps == metadata.end() && !complete) return;
  if (steps == metadata.end() || !steps->is_number_integer() || steps->get<std::int64_t>() < 0) {
    throw std::invalid_argument("checkpoint metadata: \"steps_completed\" must be there, an integer >= 0");
  }
  if (const auto readable = parse_json(dump_json(metadata), {.bytes = kMaxMetadata}); !readable) {
    throw std::invalid_argument("checkpoint metadata: " + readable.error().message);
  }
}

std::string checkpoint_path(const CoreState& state, const std::string& uuid) {
  // The uuid becomes part of a path.
  if (uuid.empty() || uuid.size() > 64 || uuid.find_first_not_of("0123456789abcdefABCDEF-") != uuid.npos) {
    throw std::invalid_argument("\"" + uuid + "\" is no uuid of a checkpoint");
  }
  return state.info.checkpoint_storage + "/" + uuid;
}

CheckpointWriter create_writer(const CoreState& state, const std::string& uuid) {
  auto writer =
      CheckpointWriter::create(state.info.checkpoint_storage, uuid,
                               {state.info.cluster_id, state.info.trial_id, state.info.run}, state.bucket);
  if (!writer) saved_or_throw(tl::unexpected(writer.error()), kNotSaved);
  return std::move(*writer);
}

/// Files below `directory` with their sizes, without the manifest and metadata that every checkpoint has.
Files files_below(const std::string& directory) {
  Files files;
  for (fs::recursive_directory_iterator walk(directory), end; walk != end; ++walk) {
    const std::string path = walk->path().lexically_relative(directory).string();
    if (walk->is_regular_file() && path != kManifestFile && path != kMetadataFile) {
      files[path] = static_cast<std::int64_t>(walk->file_size());
    }
  }
  return files;
}

/// Copies or moves a file, creating directories as necessary.
Status bring(const std::string& from, const std::string& to, const std::string& path, bool move) {
  const fs::path source = fs::path(from) / path, target = fs::path(to) / path;
  TRY(make_directories(target.parent_path().string()));
  if (!move) return copy_file(source.string(), target.string());
  if (::rename(source.c_str(), target.c_str()) != 0) return fail_errno(target.string());
  return {};
}

/// Last step, on the chief: turns the files in the writer's directory into a checkpoint and reports it.
StoredCheckpoint commit(CoreState& state, CheckpointWriter& writer, const std::string& uuid,
                        const Json& metadata) {
  // A manifest in the user's files, such as those of a restored checkpoint, is replaced by our own.
  fs::remove(fs::path(writer.directory()) / kManifestFile);
  std::size_t names = 0;
  for (const auto& [path, bytes] : files_below(writer.directory())) names += path.size() + 24;
  if (names > kMaxNameBytes)
    throw std::runtime_error("a checkpoint's file names must not take more than 3 MiB together");
  saved_or_throw(writer.write(kMetadataFile, dump_json(metadata, 2)), kNotSaved);
  auto resources = writer.commit();
  if (!resources) saved_or_throw(tl::unexpected(resources.error()), kNotSaved);
  CheckpointRecord record{.uuid = uuid,
                          .steps_completed = metadata.at("steps_completed").get<std::int64_t>(),
                          .resources = std::move(*resources),
                          .metadata = metadata};
  state.steps_completed = std::max(state.steps_completed, record.steps_completed);
  state.client->report_checkpoint(record);
  if (!state.bucket) return {checkpoint_path(state, uuid), uuid};
  // The local copy of the newest checkpoint stays, for a quick restore; the previous one goes.
  (void)remove_tree(std::exchange(state.copy, checkpoint_path(state, uuid)));
  return {state.bucket->name_of(uuid), uuid};
}

/// One sharded checkpoint, on one rank. All ranks make the same calls in the same order.
class Shards {
 public:
  explicit Shards(CoreState& state) : state_(state), distributed_(*state.distributed) {
    std::vector<Json> opened;
    together(nullptr, opened, [&] {
      if (!distributed_.is_chief()) return Json();
      const std::string uuid = uuid4();
      writer_.emplace(create_writer(state, uuid));
      return Json{{"uuid", uuid}, {"directory", writer_->directory()}};
    });
    uuid_ = opened.front()["uuid"].get<std::string>();
    together_ = opened.front()["directory"].get<std::string>();
  }
  ~Shards() {
    if (!scratch_.empty()) (void)remove_tree(scratch_);
  }
  Shards(const Shards&) = delete;

  /// Creates a directory for this rank's files beside the checkpoint, and locks it for the lifetime of this
  /// object. Not collective.
  const std::string& make_scratch() {
    scratch_ =
        state_.info.checkpoint_storage + "/" + uuid_ + "." + std::to_string(distributed_.rank()) + ".partial";
    lock_ = value_or_throw(make_locked_directory(scratch_));
    return scratch_;
  }

  /// Exchanges the offers of all ranks. `directory` "" offers no files; `failed` is an earlier failure of
  /// this rank.
  void offer(const std::string& directory, const Json& metadata, std::exception_ptr failed) {
    directory_ = directory;
    std::vector<Json> offers;
    together(std::move(failed), offers, [&] {
      check_metadata(metadata, false);
      Json mine{{"metadata", metadata}, {"files", Json::object()}, {"directory", nullptr}};
      if (directory.empty()) return mine;
      struct stat at {};
      if (::stat(directory.c_str(), &at) != 0) ok_or_throw(Status(fail_errno(directory)));
      // Ranks that share a directory are recognized by machine, device and inode.
      mine["directory"] = {distributed_.cross_rank(), at.st_dev, at.st_ino};
      for (const auto& [path, bytes] : files_below(directory)) mine["files"][path] = bytes;
      return mine;
    });
    merge_metadata(offers);
    find_owners(offers);
    compare_contents();
  }

  /// Transfers the files and commits. With `move` the files leave this rank's directory.
  StoredCheckpoint finish(bool move) {
    std::vector<Json> brought;
    together(nullptr, brought, [&] {
      std::vector<std::string> mine;
      for (const auto& [path, ranks] : owners_) {
        if (ranks.front() == distributed_.rank()) mine.push_back(path);
      }
      if (state_.bucket) return send(mine);
      for (const std::string& path : mine)
        saved_or_throw(bring(directory_, together_, path, move), kNotSaved);
      return Json();
    });
    for (const Json& sent : brought) {
      for (const auto& [path, entry] : sent.items()) {
        if (writer_) writer_->note_sent(path, entry);
      }
    }
    StoredCheckpoint stored;
    brought.clear();
    together(nullptr, brought, [&] {
      if (writer_) stored = commit(state_, *writer_, uuid_, metadata_);
      return Json(stored.path);
    });
    return {brought.front().get<std::string>(), uuid_};
  }

 private:
  /// Uploads this rank's files to the bucket. Returns their manifest entries.
  Json send(const std::vector<std::string>& files) const {
    saved_or_throw(storage::upload_files(*state_.bucket, uuid_, directory_, files), kNotSaved);
    Json entries = Json::object();
    for (const std::string& path : files)
      entries[path] = value_or_throw(digest_entry(directory_ + "/" + path));
    return entries;
  }

  /// Calls `act` on every rank and gathers the results. When it fails on one rank, throws on all of them.
  template <typename Do>
  void together(std::exception_ptr failed, std::vector<Json>& out, const Do& act) {
    Json mine;
    try {
      if (failed) std::rethrow_exception(failed);
      mine = {{"value", act()}};
    } catch (const StorageFull& thrown) {
      failed = std::current_exception();
      mine = {{"error", thrown.what()}, {"full", true}};
    } catch (const std::exception& thrown) {
      failed = std::current_exception();
      mine = {{"error", thrown.what()}};
    } catch (...) {
      failed = std::current_exception();
      mine = {{"error", "an exception that is no std::exception"}};
    }
    const std::vector<Json> all = distributed_.allgather(mine);
    if (failed) std::rethrow_exception(failed);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (!all[rank].contains("error")) continue;
      const std::string error = "rank " + std::to_string(rank) + ": " + all[rank]["error"].get<std::string>();
      if (all[rank].contains("full")) throw StorageFull(error);
      throw std::runtime_error(error);
    }
    for (const Json& rank : all) out.push_back(rank["value"]);
  }

  void merge_metadata(const std::vector<Json>& offers) {
    metadata_ = Json::object();
    for (std::size_t rank = 0; rank < offers.size(); ++rank) {
      for (const auto& [key, value] : offers[rank]["metadata"].items()) {
        if (metadata_.contains(key) && metadata_[key] != value) {
          throw std::invalid_argument("checkpoint metadata: rank " + std::to_string(rank) + " says " + key +
                                      " = " + dump_json(value) + ", a rank before it " +
                                      dump_json(metadata_[key]));
        }
        metadata_[key] = value;
      }
    }
    check_metadata(metadata_, true);
  }

  void find_owners(const std::vector<Json>& offers) {
    std::set<Json> directories;
    for (std::size_t rank = 0; rank < offers.size(); ++rank) {
      const Json& directory = offers[rank]["directory"];
      if (!directory.is_null() && !directories.insert(directory).second)
        continue;  // offered by an earlier rank
      for (const auto& [path, bytes] : offers[rank]["files"].items()) {
        owners_[path].push_back(static_cast<int>(rank));
        const std::int64_t size = bytes.get<std::int64_t>();
        if (sizes_.emplace(path, size).first->second != size) conflict(path);
      }
    }
    std::size_t names = 0;
    for (const auto& [path, ranks] : owners_) {
      names += path.size() + 24;
      if (names > kMaxNameBytes)
        throw std::invalid_argument("a checkpoint's file names must not take more than 3 MiB together");
      // A name cannot be a file on one rank and a directory on another.
      for (fs::path above = fs::path(path).parent_path(); !above.empty(); above = above.parent_path()) {
        const auto file = owners_.find(above.string());
        if (file != owners_.end()) {
          throw std::invalid_argument("checkpoint: " + above.string() + " is a file on rank " +
                                      std::to_string(file->second.front()) + " and a directory on rank " +
                                      std::to_string(ranks.front()));
        }
      }
    }
  }

  /// Compares the digests of files that several ranks offer under the same name.
  void compare_contents() {
    std::vector<Json> digests;
    const bool needed =
        std::any_of(owners_.begin(), owners_.end(), [](const auto& file) { return file.second.size() > 1; });
    if (!needed) return;
    together(nullptr, digests, [&] {
      Json mine = Json::object();
      for (const auto& [path, ranks] : owners_) {
        const bool ours = std::find(ranks.begin(), ranks.end(), distributed_.rank()) != ranks.end();
        if (ranks.size() > 1 && ours) mine[path] = value_or_throw(sha256_file(directory_ + "/" + path));
      }
      return mine;
    });
    for (const auto& [path, ranks] : owners_) {
      for (const int rank : ranks) {
        if (ranks.size() > 1 && digests[rank][path] != digests[ranks.front()][path]) conflict(path);
      }
    }
  }
  [[noreturn]] void conflict(const std::string& path) const {
    std::string ranks;
    for (const int rank : owners_.at(path)) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    throw std::invalid_argument("checkpoint: " + path + " is there on ranks " + ranks +
                                " with different contents; give it another name on each");
  }

  CoreState& state_;
  DistributedContext& distributed_;
  std::optional<CheckpointWriter> writer_;  // chief only
  std::string uuid_, together_, directory_, scratch_;
  UniqueFd lock_;  // of scratch_
  Json metadata_;
  std::map<std::string, std::vector<int>> owners_;  // file → ranks that offer it; the first contributes it
  Files sizes_;
};

/// Downloads the checkpoint if necessary and verifies it. A damaged download is removed.
void bring_sound(const CoreState& state, const std::string& uuid) {
  const std::string directory =
      value_or_throw(bring_checkpoint(state.info.checkpoint_storage, uuid, state.bucket.get()));
  const Status good = verify_checkpoint(directory);
  if (!good && state.bucket) (void)remove_tree(directory);
  ok_or_throw(good);
}

/// Returns false for a call by a single process; throws when this process may not make it.
bool is_sharded(const CoreState& state, bool shard, const char* call) {
  if (!shard && !state.distributed->is_chief()) {
    throw std::logic_error(std::string(call) + ": without shard only the chief may call it (this is rank " +
                           std::to_string(state.distributed->rank()) + ")");
  }
  return shard && state.distributed->size() > 1;
}

/// Calls `act` on the first rank of each machine in shared mode. A failure is rethrown by all ranks of the
/// machine.
template <typename Do>
void on_machine(CoreState& state, DownloadMode mode, const Do& act) {
  if (mode == DownloadMode::kNoSharedDownload || state.distributed->local_size() == 1) return act();
  std::exception_ptr failed;
  std::string error;
  if (state.distributed->local_rank() == 0) {
    try {
      act();
    } catch (const std::exception& thrown) {
      failed = std::current_exception();
      error = thrown.what();
    }
  }
  error = state.distributed->broadcast_local(error).get<std::string>();
  if (failed) std::rethrow_exception(failed);
  if (!error.empty()) throw std::runtime_error(error);
}

}  // namespace

std::string CheckpointContext::upload(const std::string& directory, const Json& metadata, bool shard) {
  if (is_sharded(state_, shard, "upload")) {
    Shards shards(state_);
    shards.offer(directory, metadata, nullptr);
    return shards.finish(/*move=*/false).uuid;
  }
  check_metadata(metadata, true);
  const std::string uuid = uuid4();
  CheckpointWriter writer = create_writer(state_, uuid);
  if (!directory.empty()) {
    for (const auto& [path, bytes] : files_below(directory))
      saved_or_throw(bring(directory, writer.directory(), path, false), kNotSaved);
  }
  return commit(state_, writer, uuid, metadata).uuid;
}

StoredCheckpoint CheckpointContext::store_path(const Json& metadata,
                                               const std::function<void(const std::string&)>& write,
                                               bool shard) {
  if (is_sharded(state_, shard, "store_path")) {
    Shards shards(state_);
    std::exception_ptr failed;
    std::string scratch;
    try {
      scratch = shards.make_scratch();
      write(scratch);
    } catch (...) {
      failed = std::current_exception();
    }
    shards.offer(scratch, metadata, failed);
    return shards.finish(/*move=*/true);
  }
  check_metadata(metadata, true);
  const std::string uuid = uuid4();
  CheckpointWriter writer = create_writer(state_, uuid);
  write(writer.directory());
  return commit(state_, writer, uuid, metadata);
}

void CheckpointContext::restore_path(const std::string& uuid,
                                     const std::function<void(const std::string&)>& read, DownloadMode mode) {
  const std::string directory = checkpoint_path(state_, uuid);
  on_machine(state_, mode, [&] { bring_sound(state_, uuid); });
  // Every rank reads; only the download is shared.
  read(directory);
}

void CheckpointContext::download(const std::string& uuid, const std::string& directory, DownloadMode mode) {
  const std::string source = checkpoint_path(state_, uuid);
  on_machine(state_, mode, [&] {
    bring_sound(state_, uuid);
    ok_or_throw(make_directories(directory));
    for (const auto& [path, bytes] : files_below(source)) ok_or_throw(bring(source, directory, path, false));
    for (const char* own : {kMetadataFile, kManifestFile}) {
      if (path_exists(source + "/" + own)) ok_or_throw(bring(source, directory, own, false));
    }
  });
}

Json CheckpointContext::get_metadata(const std::string& uuid) {
  const std::string path = checkpoint_path(state_, uuid) + "/" + kMetadataFile;
  auto text = state_.bucket && !path_exists(path)
                  ? state_.bucket->get(uuid + "/" + kMetadataFile, 4 * kMaxMetadata)
                  : read_file(path, 4 * kMaxMetadata);
  auto metadata = parse_json(value_or_throw(std::move(text)), {.bytes = 4 * kMaxMetadata});
  if (!metadata || !metadata->is_object()) throw std::runtime_error(path + " is damaged");
  return std::move(*metadata);
}

void CheckpointContext::delete_(const std::string& uuid) {
  const std::string directory = checkpoint_path(state_, uuid);
  if (state_.info.on_cluster || state_.info.detached) {
    throw std::logic_error(
        "delete_: checkpoints of an experiment are in the master's books; delete them there");
  }
  if (state_.bucket) {
    if (const storage::Done done = storage::perform(*state_.bucket, {uuid}, false); !done.error.empty())
      throw std::runtime_error(done.error);
    return ok_or_throw(remove_tree(directory));
  }
  // Renamed first, so that the checkpoint disappears atomically.
  if (::rename(directory.c_str(), (directory + ".partial").c_str()) != 0)
    ok_or_throw(Status(fail_errno(directory)));
  ok_or_throw(remove_tree(directory + ".partial"));
}

}  // namespace det
