#include "cli/output/download.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "common/archive/archive.h"
#include "common/base/files.h"
#include "common/storage/bucket_checkpoints.h"

namespace det::cli {
namespace {

/// Limits for checkpoints, which may be far larger than a context (1 TiB). The master is trusted with the
/// size; unpack() still checks paths and entry types.
ArchiveLimits limits() {
  ArchiveLimits large;
  large.packed_bytes = large.unpacked_bytes = 1LL << 40;
  large.ratio = 2000;  ///< above the maximum of gzip (about 1032)
  large.entries = 1'000'000;
  return large;
}

std::int64_t size_of(const v1::Checkpoint& checkpoint) {
  std::int64_t total = 0;
  for (const auto& [path, size] : checkpoint.resources()) total += size;
  return total;
}

/// Returns `checkpoint_storage` of the experiment, with masked secrets; null when it is not known.
Json storage_of(const v1::Checkpoint& checkpoint) {
  const auto& fields = checkpoint.training().experiment_config().fields();
  const auto found = fields.find("checkpoint_storage");
  if (found == fields.end()) return nullptr;
  auto json = to_json(found->second);
  return json ? std::move(*json) : Json();
}

/// Fetches the files from the bucket with the credentials of the environment. Errors: kFailedPrecondition (no
/// credentials, or `directory` not empty); those of storage::fetch().
Status fetch_from_bucket(const Json& storage, const std::string& uuid, const std::string& directory) {
  TRY_ASSIGN(storage::Location location, storage::read_location(storage));
  if (location.access_key.empty()) {
    return fail(Code::kFailedPrecondition,
                "checkpoint " + uuid + " is stored in " + location.name() +
                    "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use --mode master");
  }
  std::error_code error;
  if (std::filesystem::exists(directory, error) && !std::filesystem::is_empty(directory, error))
    return fail(Code::kFailedPrecondition, directory + " is not empty; select another directory with -o");
  return storage::fetch(storage::Bucket(std::move(location)), uuid, directory);
}

}  // namespace

Result<v1::Checkpoint> get_checkpoint(Client& client, const std::string& uuid) {
  v1::GetCheckpointRequest request;
  request.set_checkpoint_uuid(uuid);
  TRY_ASSIGN(v1::GetCheckpointResponse response,
             client.call(&v1::CheckpointService::Stub::GetCheckpoint, request));
  return std::move(*response.mutable_checkpoint());
}

Status download_checkpoint(Client& client, const std::string& uuid, const std::string& directory) {
  TRY_ASSIGN(const v1::Checkpoint checkpoint, get_checkpoint(client, uuid));
  v1::DownloadCheckpointRequest request;
  request.set_checkpoint_uuid(uuid);
  const double expected = std::max(1.0, static_cast<double>(size_of(checkpoint)));
  std::string bytes;
  {
    ProgressBar bar("checkpoint " + uuid.substr(0, 8));
    TRY(client.stream(&v1::CheckpointService::Stub::DownloadCheckpoint, request,
                      [&](const v1::DownloadCheckpointResponse& part) {
                        bytes += part.chunk();
                        bar.show(static_cast<double>(bytes.size()) / expected);
                        return true;
                      }));
  }
  return unpack(bytes, directory, limits());
}

Status copy_checkpoint(Client& client, const std::string& uuid, const std::string& directory,
                       bool or_download) {
  namespace fs = std::filesystem;
  TRY_ASSIGN(const v1::Checkpoint checkpoint, get_checkpoint(client, uuid));
  if (const Json storage = storage_of(checkpoint); storage::is_bucket(storage)) {
    const Status done = fetch_from_bucket(storage, uuid, directory);
    if (done || !or_download) return done;
    return download_checkpoint(client, uuid, directory);
  }
  // The directory counts as accessible only when all files of the record exist there: another file system may
  // be mounted at the same path.
  const fs::path from = checkpoint.storage_path();
  std::error_code error;
  const bool here = from.is_absolute() && std::all_of(checkpoint.resources().begin(),
                                                      checkpoint.resources().end(), [&](const auto& file) {
                                                        return fs::exists(from / file.first, error) && !error;
                                                      });
  if (!here && or_download) return download_checkpoint(client, uuid, directory);
  if (!here) {
    return fail(Code::kFailedPrecondition, "the files of checkpoint " + uuid + " are not at " +
                                               checkpoint.storage_path() +
                                               " on this machine; use --mode master");
  }
  if (fs::exists(directory, error) && !fs::is_empty(directory, error))
    return fail(Code::kFailedPrecondition, directory + " is not empty; select another directory with -o");
  for (const auto& [path, size] : checkpoint.resources()) {
    const fs::path target = fs::path(directory) / path;
    // File names come from the trial: none may lead out of the directory.
    if (fs::path(path).is_absolute() || path.find("..") != std::string::npos)
      return fail(Code::kDataLoss,
                  "checkpoint " + uuid + " has the unsafe file name \"" + path + "\"; use --mode master");
    fs::create_directories(path.ends_with('/') ? target : target.parent_path(), error);
    if (!error && !path.ends_with('/')) fs::copy_file(from / path, target, error);
    if (error) return fail(Code::kUnavailable, target.string() + ": " + error.message());
  }
  return {};
}

std::optional<double> metric_of(const v1::Checkpoint& checkpoint, const std::string& metric) {
  const v1::CheckpointTrainingMetadata& training = checkpoint.training();
  if (metric.empty()) {
    if (!training.has_searcher_metric()) return std::nullopt;
    return training.searcher_metric().value();
  }
  // Determined AI's JSON nests the averages in "avgMetrics".
  const auto& outer = training.validation_metrics().fields();
  const auto averages = outer.find("avgMetrics");
  const auto& fields = averages != outer.end() && averages->second.has_struct_value()
                           ? averages->second.struct_value().fields()
                           : outer;
  const auto found = fields.find(metric);
  if (found == fields.end() || !found->second.has_number_value()) return std::nullopt;
  return found->second.number_value();
}

std::vector<v1::Checkpoint> best_first(std::vector<v1::Checkpoint> checkpoints, const std::string& metric,
                                       bool smaller_is_better) {
  // NaN has no place in an order, and std::stable_sort requires one.
  std::erase_if(checkpoints, [&](const v1::Checkpoint& each) {
    const auto value = metric_of(each, metric);
    return each.state() != v1::Checkpoint::STATE_COMPLETED || !value || std::isnan(*value);
  });
  std::stable_sort(checkpoints.begin(), checkpoints.end(),
                   [&](const v1::Checkpoint& a, const v1::Checkpoint& b) {
                     const double left = *metric_of(a, metric), right = *metric_of(b, metric);
                     return smaller_is_better ? left < right : left > right;
                   });
  return checkpoints;
}

CLI::Option* MetricOrder::declare(CLI::App& app, const char* sort_by_help) {
  CLI::Option* by = app.add_option("--sort-by", sort_by, sort_by_help);
  CLI::Option* up =
      app.add_flag("--smaller-is-better", smaller, "Smaller values are better (default: as the searcher).");
  app.add_flag("--larger-is-better", larger, "Larger values are better.")->excludes(up);
  return by;
}

std::vector<v1::Checkpoint> MetricOrder::best_first(std::vector<v1::Checkpoint> checkpoints,
                                                    const google::protobuf::Struct& config) const {
  return cli::best_first(std::move(checkpoints), sort_by, smaller || (!larger && smaller_is_better(config)));
}

bool smaller_is_better(const google::protobuf::Struct& config) {
  const auto searcher = config.fields().find("searcher");
  if (searcher == config.fields().end()) return true;
  const auto& fields = searcher->second.struct_value().fields();
  const auto found = fields.find("smaller_is_better");
  return found == fields.end() || found->second.bool_value();
}

}  // namespace det::cli
