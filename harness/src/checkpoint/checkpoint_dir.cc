// Checkpoint directories: atomic creation, verification and removal of abandoned ones.
#include "harness/src/checkpoint/checkpoint_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <tuple>
#include <vector>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/crypto/digest.h"
#include "common/storage/bucket_checkpoints.h"
#include "harness/src/base/heartbeat.h"
#include "harness/src/checkpoint/checksum.h"

namespace det {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";
constexpr char kPartial[] = ".partial";
/// Bounds the memory for a damaged manifest.
constexpr std::int64_t kManifestLimit = 16 << 20;

/// Size and modification time of a file; -1 when it does not exist.
struct FileStamp {
  std::int64_t size = -1, changed_ns = -1;
};
FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

/// Most recent modification of a directory and its direct entries, in nanoseconds since 1970.
std::int64_t newest_change(const std::string& path) {
  std::int64_t newest = stamp_of(path).changed_ns;
  std::error_code error;
  for (fs::directory_iterator walk(path, error), end; !error && walk != end; walk.increment(error)) {
    newest = std::max(newest, stamp_of(walk->path().string()).changed_ns);
  }
  return newest;
}

Status sync_file(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) return fail_errno(path);
  return {};
}

/// Relative paths of the regular files below `root`, sorted. All files and directories are synced.
Result<std::vector<std::string>> list_and_sync(const std::string& root) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator walk(root, error), end;
  for (; !error && walk != end; walk.increment(error)) {
    if (walk->is_directory()) {
      TRY(sync_directory(walk->path().string()));
    } else {
      TRY(sync_file(walk->path().string()));
      files.push_back(fs::relative(walk->path(), root).string());
    }
  }
  if (error) return fail(Code::kUnavailable, root + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

Result<Json> read_manifest(const std::string& directory) {
  TRY_ASSIGN(const std::string text, read_file(directory + "/" + kManifest, kManifestLimit));
  auto manifest = parse_json(text, {.bytes = static_cast<std::size_t>(kManifestLimit)});
  if (!manifest || !manifest->is_object() || !manifest->contains("files") ||
      !(*manifest)["files"].is_object()) {
    return fail(Code::kDataLoss, directory + ": manifest.json is damaged");
  }
  return manifest;
}

Status verify_file(const std::string& directory, const std::string& path, const Json& entry) {
  const std::string file = directory + "/" + path;
  const auto damaged = [&](const std::string& how) {
    return fail(Code::kDataLoss, "checkpoint " + directory + ": " + path + " " + how);
  };
  // A manifest from elsewhere must not make us read files outside the checkpoint.
  const fs::path relative(path);
  if (relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return damaged("leads out of the checkpoint");
  }
  const auto text = [&](const char* kind) {
    const Json* value = entry.is_object() ? find_path(entry, kind) : nullptr;
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  };
  const std::string sha256 = text("sha256"), crc64 = text("crc64");
  const Json* bytes = entry.is_object() ? find_path(entry, "size") : nullptr;
  if (bytes == nullptr || !bytes->is_number_integer() || (sha256.empty() && crc64.empty())) {
    return damaged("has no size and digest in the manifest");
  }
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error) return damaged("is missing");
  if (size != bytes->get<std::uint64_t>()) {
    return damaged("has " + std::to_string(size) + " bytes, not " + bytes->dump());
  }
  TRY_ASSIGN(const std::string digest, sha256.empty() ? crc64_file(file) : sha256_file(file));
  if (digest != (sha256.empty() ? crc64 : sha256))
    return damaged("is damaged: its digest is not the manifest's");
  return {};
}

/// "steps_completed" of metadata.json; -1 when it cannot be read.
std::int64_t steps_in(const Result<std::string>& text) {
  if (!text) return -1;
  const auto metadata = parse_json(*text);
  if (!metadata || !metadata->is_object()) return -1;
  const Json* steps = find_path(*metadata, "steps_completed");
  return steps != nullptr && steps->is_number_integer() ? steps->get<std::int64_t>() : -1;
}

std::int64_t steps_of(const std::string& directory) {
  return steps_in(read_file(directory + "/metadata.json", 1 << 20));
}

/// Tries the checkpoints of a bucket, most steps first, until one verifies. Others are skipped with a
/// warning.
std::optional<std::string> find_latest_in(const std::string& storage, const storage::Bucket& bucket) {
  const auto names = storage::list_checkpoints(bucket);
  if (!names) std::fprintf(stderr, "warning: %s\n", names.error().message.c_str());
  std::vector<std::pair<std::int64_t, std::string>> candidates;
  for (const std::string& uuid : names ? *names : std::vector<std::string>())
    candidates.emplace_back(steps_in(bucket.get(uuid + "/metadata.json", 1 << 20)), uuid);
  std::sort(candidates.rbegin(), candidates.rend());
  for (const auto& [steps, uuid] : candidates) {
    const auto directory = bring_checkpoint(storage, uuid, &bucket);
    const Status good = directory ? verify_checkpoint(*directory) : tl::unexpected(directory.error());
    if (good) return *directory;
    std::fprintf(stderr, "warning: skipped: %s\n", good.error().message.c_str());
  }
  return std::nullopt;
}

/// Locks a directory exclusively and checks that it is still at `path`. Without support for locks in the file
/// system, the result is an unlocked descriptor.
Result<UniqueFd> lock_directory(const std::string& path) {
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail_errno(path);
  while (::flock(directory.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return directory;
  }
  // While this call waited for the lock, its holder may have removed the directory.
  struct stat held {
  }, there{};
  if (::fstat(directory.get(), &held) != 0 || ::stat(path.c_str(), &there) != 0 ||
      held.st_ino != there.st_ino) {
    return fail(Code::kAborted, path + " was removed while it was made");
  }
  return directory;
}

}  // namespace

Status copy_file(const std::string& from, const std::string& to) {
  UniqueFd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!source || ::fstat(source.get(), &status) != 0) return fail_errno(from);
  UniqueFd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, status.st_mode & 0777));
  if (!target) return fail_errno(to);
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(source.get(), buffer.data(), buffer.size());
    if (got == 0) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(from);
    const Status wrote = write_all(target.get(), {buffer.data(), static_cast<std::size_t>(got)});
    if (!wrote) return fail(wrote.error().code, to + ": " + wrote.error().message);
  }
}

Result<UniqueFd> make_locked_directory(const std::string& path) {
  for (int attempt = 0;; ++attempt) {
    TRY(make_directories(path));
    // Between these two calls, the clean-up of another writer may remove the directory as abandoned.
    auto lock = lock_directory(path);
    if (lock || attempt == 10) return lock;
  }
}

Result<CheckpointWriter> CheckpointWriter::create(const std::string& storage, const std::string& uuid,
                                                  CheckpointOwner owner,
                                                  std::shared_ptr<const storage::Bucket> bucket) {
  const std::string complete = storage + "/" + uuid, partial = complete + kPartial;
  TRY_ASSIGN(UniqueFd lock, make_locked_directory(partial));
  // The directory's own time stamp is the current time by the clock of the storage, which may differ from
  // ours.
  remove_dead_partials(storage, stamp_of(partial).changed_ns);
  if (bucket) TRY(storage::begin_upload(*bucket, uuid, {owner.cluster, TrialId(owner.trial), owner.run}));
  return CheckpointWriter(partial, complete, std::move(owner), std::move(lock), std::move(bucket));
}

CheckpointWriter::CheckpointWriter(CheckpointWriter&& other) noexcept
    : partial_(std::exchange(other.partial_, {})),
      complete_(std::move(other.complete_)),
      owner_(std::move(other.owner_)),
      lock_(std::move(other.lock_)),
      noted_(std::move(other.noted_)),
      sent_(std::move(other.sent_)),
      bucket_(std::move(other.bucket_)) {}

CheckpointWriter::~CheckpointWriter() {
  if (partial_.empty()) return;
  (void)remove_tree(partial_);
  // A failure here is repaired by the master: the mark in the bucket names the owner of the upload.
  if (bucket_) (void)storage::perform(*bucket_, {uuid()}, false);
}

Status CheckpointWriter::write(const std::string& path, std::string_view content) {
  UniqueFd file(::open((partial_ + "/" + path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return fail_errno(partial_ + "/" + path);
  return write_all(file.get(), content);
}

void CheckpointWriter::note(const std::string& path, std::uint64_t crc64) {
  const FileStamp stamp = stamp_of(partial_ + "/" + path);
  noted_[path] = {crc64, stamp.size, stamp.changed_ns};
}

Status CheckpointWriter::copy(const std::string& directory, const std::vector<std::string>& files,
                              const std::string& path) {
  for (const std::string& file : files) {
    beat();
    const fs::path target = fs::path(partial_) / path / file;
    TRY(make_directories(target.parent_path().string()));
    const Status copied = copy_file(directory + "/" + file, target.string());
    // A file that vanished since it was listed is left out.
    if (!copied && copied.error().code != Code::kNotFound)
      return fail(copied.error().code, "copying into the checkpoint: " + copied.error().message);
  }
  return {};
}

Result<std::map<std::string, std::int64_t>> CheckpointWriter::commit() {
  TRY_ASSIGN(const std::vector<std::string> files, list_and_sync(partial_));
  Json entries = Json::object();
  std::map<std::string, std::int64_t> resources;
  for (const std::string& path : files) {
    const std::string file = partial_ + "/" + path;
    const FileStamp stamp = stamp_of(file);
    // The CRC-64 that was computed while writing is valid as long as the file has not changed since.
    const auto noted = noted_.find(path);
    if (noted != noted_.end() && noted->second.size == stamp.size &&
        noted->second.changed_ns == stamp.changed_ns) {
      entries[path] = {{"size", stamp.size}, {"crc64", crc64_hex(noted->second.crc64)}};
    } else {
      TRY_ASSIGN(entries[path], digest_entry(file));
    }
    resources[path] = stamp.size;
  }
  if (bucket_) TRY(send(files));
  for (const auto& [path, entry] : sent_) {
    entries[path] = entry;
    resources[path] = entry.at("size").get<std::int64_t>();
  }
  Json content{{"format", 2}};
  // The owner lets the cluster find checkpoints that were never reported.
  if (!owner_.cluster.empty())
    content["owner"] = {{"cluster", owner_.cluster}, {"trial", owner_.trial}, {"run", owner_.run}};
  content["files"] = std::move(entries);
  const std::string manifest = dump_json(content, 1);
  // The manifest is written last: its presence marks the checkpoint as complete.
  TRY(write_file_atomic(partial_ + "/" + kManifest, manifest));
  resources[kManifest] = static_cast<std::int64_t>(manifest.size());
  TRY(sync_directory(partial_));
  if (bucket_) TRY(storage::finish_upload(*bucket_, uuid(), manifest));
  // With files of other machines in the bucket, the local directory is incomplete and cannot serve as a copy.
  if (!sent_.empty()) {
    (void)remove_tree(std::exchange(partial_, {}));
    return resources;
  }
  if (::rename(partial_.c_str(), complete_.c_str()) != 0) return fail_errno(complete_);
  partial_.clear();
  lock_.reset();
  // Syncing the parent makes the rename durable.
  TRY(sync_directory(fs::path(complete_).parent_path().string()));
  return resources;
}

Status CheckpointWriter::send(const std::vector<std::string>& files) const {
  return storage::upload_files(*bucket_, uuid(), partial_, files);
}

Result<Json> digest_entry(const std::string& path) {
  TRY_ASSIGN(std::string digest, sha256_file(path));
  return Json{{"size", stamp_of(path).size}, {"sha256", std::move(digest)}};
}

std::vector<std::string> list_files(const std::string& directory, const std::string& except) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator walk(directory, error), end;
  for (; !error && walk != end; walk.increment(error)) {
    // A link or special file is skipped; hidden names and `except` are skipped with everything below them.
    std::error_code ignored;
    const fs::file_status status = walk->symlink_status(ignored);
    if (walk->path().filename().string().front() == '.' || fs::equivalent(walk->path(), except, ignored)) {
      walk.disable_recursion_pending();
    } else if (fs::is_regular_file(status)) {
      files.push_back(fs::relative(walk->path(), directory, ignored).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void remove_dead_partials(const std::string& storage, std::int64_t now_ns) {
  // The lock of a live writer protects its directory. Locks of network file systems may not be visible on
  // other machines, so recently changed directories are kept in any case.
  constexpr std::int64_t kMinute = 60'000'000'000, kPatience = 10 * kMinute,
                         kPatienceWithoutLocks = 24 * 60 * kMinute;
  std::error_code error;
  for (fs::directory_iterator walk(storage, error), end; !error && walk != end; walk.increment(error)) {
    const std::string path = walk->path().string();
    if (!path.ends_with(kPartial)) continue;
    const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) continue;
    const bool locked = ::flock(directory.get(), LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK) continue;
    if (now_ns - newest_change(path) >= (locked ? kPatience : kPatienceWithoutLocks)) (void)remove_tree(path);
  }
}

Status verify_checkpoint(const std::string& directory) {
  if (!path_exists(directory + "/" + kManifest)) {
    return fail(Code::kNotFound, "no complete checkpoint at " + directory + " (it has no manifest.json)");
  }
  TRY_ASSIGN(const Json manifest, read_manifest(directory));
  for (const auto& [path, entry] : manifest["files"].items()) TRY(verify_file(directory, path, entry));
  return {};
}

std::optional<std::string> find_latest_checkpoint(const std::string& storage, const storage::Bucket* bucket) {
  if (bucket != nullptr) return find_latest_in(storage, *bucket);
  std::vector<std::tuple<std::int64_t, fs::file_time_type, std::string>> candidates;
  std::error_code error;
  for (fs::directory_iterator walk(storage, error), end; !error && walk != end; walk.increment(error)) {
    const std::string directory = walk->path().string();
    const std::string manifest = directory + "/" + kManifest;
    if (directory.ends_with(kPartial) || !path_exists(manifest)) continue;
    std::error_code no_time;
    // Ties of steps are broken by time.
    candidates.emplace_back(steps_of(directory), fs::last_write_time(manifest, no_time), directory);
  }
  std::sort(candidates.rbegin(), candidates.rend());
  for (const auto& [steps, time, directory] : candidates) {
    const Status good = verify_checkpoint(directory);
    if (good) return directory;
    std::fprintf(stderr, "warning: skipped: %s\n", good.error().message.c_str());
  }
  return std::nullopt;
}

Result<std::string> bring_checkpoint(const std::string& storage, const std::string& uuid,
                                     const storage::Bucket* bucket) {
  const std::string directory = storage + "/" + uuid;
  if (bucket == nullptr) return directory;
  TRY(make_directories(storage));
  // Other processes of this machine wait here and then find the directory.
  TRY_ASSIGN(const FileLock lock, FileLock::lock(storage + "/" + uuid + ".lock"));
  if (!path_exists(directory)) TRY(storage::fetch(*bucket, uuid, directory));
  return directory;
}

}  // namespace det
