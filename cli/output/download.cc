#include "cli/output/download.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "common/archive/archive.h"
#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/storage/bucket_checkpoints.h"
#include "common/storage/checkpoint_files.h"

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

/// Returns the target of a download without slashes at its end. Errors: kFailedPrecondition (not empty).
Result<std::string> checked_target(const std::string& directory) {
  auto target = vacant_directory(directory);
  if (!target)
    return fail(target.error().code, target.error().message + "; select another directory with -o");
  return target;
}

/// Fetches the files from the bucket with the credentials of the environment. Errors: kFailedPrecondition (no
/// credentials); those of storage::fetch().
Status fetch_from_bucket(const storage::Location& location, const std::string& uuid,
                         const std::string& target) {
  if (location.access_key.empty()) {
    return fail(Code::kFailedPrecondition,
                "checkpoint " + uuid + " is stored in " + location.name() +
                    "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use --mode master");
  }
  return storage::fetch(storage::Bucket(location), uuid, target);
}

/// True for errors of this machine's way to a store: no connection, or keys of the environment without
/// access.
bool is_unreachable(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kPermissionDenied;
}

/// Archive on its way from the master, in a file without a name on the disk of the target: checkpoints may be
/// larger than memory.
class ArchiveFile {
 public:
  /// Creates the file beside `directory`. Errors: those of errno.
  static Result<ArchiveFile> create(const std::string& directory) {
    const std::filesystem::path beside = std::filesystem::absolute(directory).parent_path();
    std::error_code error;
    std::filesystem::create_directories(beside, error);
    std::string name = (beside / ".det-download-XXXXXX").string();
    UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd) return fail(Code::kUnavailable, beside.string() + ": " + std::strerror(errno));
    ::unlink(name.c_str());
    return ArchiveFile(std::move(fd), beside.string());
  }
  ArchiveFile(ArchiveFile&& other) noexcept
      : fd_(std::move(other.fd_)),
        beside_(std::move(other.beside_)),
        size_(other.size_),
        mapped_(std::exchange(other.mapped_, nullptr)) {}
  ~ArchiveFile() {
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
  }
  Status append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return fail(Code::kResourceExhausted, beside_ + ": " + std::strerror(errno));
      bytes.remove_prefix(static_cast<std::size_t>(count));
      size_ += static_cast<std::size_t>(count);
    }
    return {};
  }
  std::size_t size() const { return size_; }
  /// Returns the whole archive. The kernel loads and drops its pages as needed.
  Result<std::string_view> map() {
    if (size_ == 0) return std::string_view();
    void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_.get(), 0);
    if (mapped == MAP_FAILED) return fail(Code::kUnavailable, beside_ + ": " + std::strerror(errno));
    mapped_ = mapped;
    return std::string_view(static_cast<const char*>(mapped), size_);
  }

 private:
  ArchiveFile(UniqueFd fd, std::string beside) : fd_(std::move(fd)), beside_(std::move(beside)) {}
  UniqueFd fd_;
  std::string beside_;  ///< directory, for messages
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
};

/// Opens the files of a checkpoint in its directory, without following links: trials write there. Names with
/// a slash at the end are directories. Errors: those of storage::CheckpointFiles.
Result<std::map<std::string, storage::StoredFile>> open_files(const v1::Checkpoint& checkpoint,
                                                              const std::string& uuid) {
  const std::filesystem::path from = checkpoint.storage_path();
  if (!from.is_absolute()) return fail(Code::kNotFound, "it has no directory");
  TRY_ASSIGN(const auto root, storage::PinnedRoot::open({.base = from.parent_path().string()}));
  TRY_ASSIGN(const auto stored, storage::CheckpointFiles::open(root, CheckpointId(uuid)));
  std::map<std::string, storage::StoredFile> files;
  for (const auto& [path, size] : checkpoint.resources()) {
    TRY(storage::check_file_name(path));
    if (path.ends_with('/')) continue;
    TRY_ASSIGN(storage::StoredFile file, stored.file(path));
    files.emplace(path, std::move(file));
  }
  return files;
}

Status copy_file(const storage::StoredFile& from, const std::string& to) {
  constexpr std::int64_t kPiece = 1 << 20;
  std::ofstream out(to, std::ios::binary);
  for (std::int64_t left = from.size(); left > 0 && out;) {
    TRY_ASSIGN(const std::string piece, from.read(std::min(left, kPiece)));
    out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    left -= static_cast<std::int64_t>(piece.size());
  }
  out.close();
  return out ? Status() : fail(Code::kUnavailable, to + ": " + std::strerror(errno));
}

}  // namespace

Result<v1::Checkpoint> get_checkpoint(Client& client, const std::string& uuid) {
  v1::GetCheckpointRequest request;
  request.set_checkpoint_uuid(uuid);
  TRY_ASSIGN(v1::GetCheckpointResponse response, client.call(v1::CheckpointService::GetCheckpoint, request));
  return std::move(*response.mutable_checkpoint());
}

Status download_checkpoint(Client& client, const std::string& uuid, const std::string& directory) {
  TRY_ASSIGN(const std::string target, checked_target(directory));
  TRY_ASSIGN(const v1::Checkpoint checkpoint, get_checkpoint(client, uuid));
  v1::DownloadCheckpointRequest request;
  request.set_checkpoint_uuid(uuid);
  const double expected = std::max(1.0, static_cast<double>(size_of(checkpoint)));
  TRY_ASSIGN(ArchiveFile archive, ArchiveFile::create(target));
  {
    ProgressBar bar("checkpoint " + uuid.substr(0, 8));
    Status written;
    const Status streamed = client.stream(v1::CheckpointService::DownloadCheckpoint, request,
                                          [&](const v1::DownloadCheckpointResponse& part) {
                                            written = archive.append(part.chunk());
                                            bar.show(static_cast<double>(archive.size()) / expected);
                                            return written.has_value();
                                          });
    TRY(written);
    TRY(streamed);
  }
  TRY_ASSIGN(const std::string_view bytes, archive.map());
  return unpack(bytes, target, limits());
}

Status copy_checkpoint(Client& client, const std::string& uuid, const std::string& directory,
                       bool or_download) {
  namespace fs = std::filesystem;
  TRY_ASSIGN(const std::string place, checked_target(directory));
  TRY_ASSIGN(const v1::Checkpoint checkpoint, get_checkpoint(client, uuid));
  if (const Json storage = storage_of(checkpoint); storage::is_bucket(storage)) {
    TRY_ASSIGN(const storage::Location location, storage::read_location(storage));
    Status done = fetch_from_bucket(location, uuid, place);
    if (done || !or_download) return done;
    if (!location.access_key.empty() && !is_unreachable(done.error().code)) return done;
    return download_checkpoint(client, uuid, place);
  }
  // The directory counts as accessible only when all files of the record exist there: another file system may
  // be mounted at the same path.
  const auto files = open_files(checkpoint, uuid);
  if (!files && or_download) return download_checkpoint(client, uuid, place);
  if (!files) {
    return fail(Code::kFailedPrecondition, "the files of checkpoint " + uuid + " are not at " +
                                               checkpoint.storage_path() + " on this machine (" +
                                               files.error().message + "); use --mode master");
  }
  std::error_code error;
  for (const auto& [path, size] : checkpoint.resources()) {
    const fs::path target = fs::path(place) / path;
    fs::create_directories(path.ends_with('/') ? target : target.parent_path(), error);
    if (error) return fail(Code::kUnavailable, target.string() + ": " + error.message());
    if (const auto file = files->find(path); file != files->end())
      TRY(copy_file(file->second, target.string()));
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
