#include "master/api/submit/trial_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/storage/work.h"

namespace det::api {
namespace {

/// Short: a training process or a user waits.
constexpr storage::BucketOptions kMediaPatience{
    .attempts = 3, .connect_timeout = std::chrono::seconds(5), .stall_timeout = std::chrono::seconds(10)};

OpenFile open_file(const storage::StoredFile& file) {
  return {file.size(), file.changed(), [file](std::int64_t left) { return file.read(left); }};
}

/// Digests come from the database; checked again, because they become names of files.
Status check_digest(const std::string& digest) {
  if (digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == digest.npos) return {};
  return fail(Code::kInvalidArgument, "digest: 64 lower-case hexadecimal digits are expected");
}

}  // namespace

Result<TrialFiles> TrialFiles::open(const storage::StoragePolicy& policy, const std::string& config,
                                    TrialPlace place) {
  TRY_ASSIGN(const Json json, parse_json(config, {.bytes = 16 << 20, .depth = 64}));
  const Json* storage = json.is_object() ? find_path(json, "checkpoint_storage") : nullptr;
  if (storage == nullptr || !storage->is_object())
    return fail(Code::kFailedPrecondition, "the storage of the experiment is not known");
  TrialFiles files(std::move(place));
  if (storage::is_bucket(*storage)) {
    TRY_ASSIGN(const storage::Location location, policy.bucket_of(*storage));
    files.bucket_.emplace(location, kMediaPatience);
    return files;
  }
  TRY_ASSIGN(const storage::Root root, policy.root_of(*storage));
  // The first checkpoint creates what a user's configuration names below the base, and media may come before.
  auto pinned = storage::PinnedRoot::open({.base = root.base});
  if (!pinned)
    return fail(Code::kFailedPrecondition,
                "the master cannot reach " + root.path() +
                    ", where the experiment stores its files; mount it on the master's machine");
  files.root_ = std::make_shared<const storage::PinnedRoot>(std::move(*pinned));
  files.below_ = root.below.empty() ? "" : root.below + "/";
  return files;
}

TrialFiles TrialFiles::of(TrialId trial) const {
  TrialFiles files = *this;
  files.place_.trial = trial;
  return files;
}

std::string TrialFiles::media_directory() const {
  return below_ + storage::media_name(place_.cluster_id, place_.experiment) + "/trial/" +
         std::to_string(place_.trial.value);
}

std::vector<std::string> TrialFiles::tensorboard_directories() const {
  // The training library's first, then that of Determined AI's Python package.
  const auto names = storage::tensorboard_names(place_.cluster_id, place_.experiment);
  const std::string trial = std::to_string(place_.trial.value);
  return {below_ + names.at(0) + "/trial_" + trial, below_ + names.at(1) + "/trial/" + trial};
}

Status TrialFiles::put_media(const std::string& digest, std::string_view content) const {
  TRY(check_digest(digest));
  if (bucket_) return bucket_->put(media_directory() + "/" + digest, content);
  TRY_ASSIGN(const storage::PinnedRoot directory, storage::create_directories(*root_, media_directory()));
  return storage::write_file(directory, digest, content);
}

Result<OpenFile> TrialFiles::media(const std::string& digest, std::int64_t size) const {
  TRY(check_digest(digest));
  if (bucket_) {
    const auto read = [bucket = *bucket_, key = media_directory() + "/" + digest, size](std::int64_t left) {
      return bucket.get_range(key, size - left, left);
    };
    return OpenFile{size, 0, read};
  }
  TRY_ASSIGN(storage::PinnedRoot directory, root_->directory(media_directory()));
  TRY_ASSIGN(const auto file, storage::CheckpointFiles(std::move(directory)).file(digest));
  return open_file(file);
}

Status TrialFiles::remove_media(const std::string& digest) const {
  TRY(check_digest(digest));
  if (bucket_) return bucket_->remove({media_directory() + "/" + digest});
  TRY_ASSIGN(storage::PinnedRoot directory, root_->directory(media_directory()));
  return storage::CheckpointFiles(std::move(directory)).remove(digest);
}

Result<std::vector<storage::TreeFile>> TrialFiles::tensorboard_files(std::size_t limit) const {
  std::vector<storage::TreeFile> out;
  if (bucket_) return out;
  for (const std::string& name : tensorboard_directories()) {
    const auto directory = root_->directory(name);
    if (!directory && directory.error().code == Code::kNotFound) continue;
    TRY(directory);
    TRY_ASSIGN(auto files, storage::list_files(*directory, limit - std::min(limit, out.size())));
    std::move(files.begin(), files.end(), std::back_inserter(out));
  }
  return out;
}

Result<OpenFile> TrialFiles::tensorboard_file(const std::string& path) const {
  TRY(storage::check_file_name(path));
  for (const std::string& name : root_ ? tensorboard_directories() : std::vector<std::string>()) {
    auto directory = root_->directory(name);
    if (!directory && directory.error().code == Code::kNotFound) continue;
    TRY(directory);
    const auto file = storage::CheckpointFiles(std::move(*directory)).file(path);
    if (file) return open_file(*file);
    if (file.error().code != Code::kNotFound) return tl::unexpected(file.error());
  }
  return fail(Code::kNotFound,
              "file " + path + " of trial " + std::to_string(place_.trial.value) + " not found");
}

Result<std::string> read_all(const OpenFile& file, std::int64_t limit) {
  if (file.size > limit)
    return fail(Code::kResourceExhausted, "the file has more than " + std::to_string(limit) + " bytes");
  std::string out;
  for (std::int64_t left = file.size; left > 0; left = file.size - static_cast<std::int64_t>(out.size())) {
    TRY_ASSIGN(const std::string piece, file.read(left));
    out += piece;
  }
  return out;
}

}  // namespace det::api
