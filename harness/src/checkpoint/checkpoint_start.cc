// Selection of the checkpoint from which a run starts.
#include "harness/src/checkpoint/checkpoint_start.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/files.h"
#include "common/storage/bucket.h"
#include "harness/src/checkpoint/checkpoint_dir.h"

namespace det {
namespace {

namespace fs = std::filesystem;

/// Follows the master's alternatives from the latest checkpoint until one verifies.
Result<std::string> sound_checkpoint(const TrialInfo& info, const FallBack& fall_back) {
  // The run will write to the bucket, so missing permissions are reported at the start, not hours later.
  if (info.bucket) TRY(info.bucket->check());
  std::string uuid = info.latest_checkpoint;
  while (!uuid.empty()) {
    const Status good = check_start(info.checkpoint_dir, uuid, info.bucket.get());
    if (good) return uuid;
    // Only damage is a reason to fall back. An unavailable storage must not cost the trial its progress.
    if (good.error().code != Code::kDataLoss) return tl::unexpected(good.error());
    auto instead = fall_back(uuid, good.error().message);
    if (!instead) return fail(Code::kDataLoss, good.error().message + "; " + instead.error().message);
    std::fprintf(
        stderr, "warning: checkpoint %s cannot be used: %s; %s\n", uuid.c_str(), good.error().message.c_str(),
        instead->empty() ? "starting from the beginning" : ("going on from checkpoint " + *instead).c_str());
    uuid = std::move(*instead);
  }
  return uuid;
}

Status check_directory(const std::string& storage, const std::string& uuid) {
  std::error_code error;
  // An empty directory is more likely an unmounted volume than a lost checkpoint.
  const fs::directory_iterator first(storage, error);
  if (error || first == fs::directory_iterator()) {
    return fail(Code::kUnavailable, "the checkpoint storage " + storage + " is " +
                                        (error ? "not there" : "empty") + "; is it mounted on this machine?");
  }
  const std::string directory = storage + "/" + uuid;
  if (!path_exists(directory)) return fail(Code::kDataLoss, directory + " is missing");
  if (path_exists(directory + "/manifest.json")) return verify_checkpoint(directory);
  // Without both files the checkpoint is one of another program, which has no manifest.
  if (path_exists(directory + "/trial_state.json"))
    return fail(Code::kDataLoss, directory + ": manifest.json is missing");
  return {};
}

}  // namespace

Status check_start(const std::string& storage, const std::string& uuid, const storage::Bucket* bucket) {
  if (bucket != nullptr) {
    const auto brought = bring_checkpoint(storage, uuid, bucket);
    if (!brought && brought.error().code == Code::kNotFound)
      return fail(Code::kDataLoss, brought.error().message);
    if (!brought) return tl::unexpected(brought.error());
  }
  Status good = check_directory(storage, uuid);
  // A damaged copy is removed, so the next attempt downloads it again.
  if (!good && bucket != nullptr) (void)remove_tree(storage + "/" + uuid);
  return good;
}

std::string agree_on_start(DistributedContext& distributed, const TrialInfo& info,
                           const FallBack& fall_back) {
  // The chief's result, good or bad, decides for all ranks: none may start from another checkpoint.
  Json told = Json::object();
  if (distributed.is_chief()) {
    const auto found = sound_checkpoint(info, fall_back);
    found ? told["uuid"] = *found : told["error"] = found.error().message;
  }
  told = distributed.broadcast(told);
  if (told.contains("error")) throw std::runtime_error(told["error"].get<std::string>());
  return told["uuid"].get<std::string>();
}

}  // namespace det
