// Owns the calls of CheckpointService and the writing of the archive.
#include "master/api/checkpoint.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <future>
#include <memory>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "master/api/convert.h"
#include "master/api/secrets.h"
#include "master/api/reporter.h"
#include "master/api/trial.h"

namespace det::api {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

/// What libarchive writes, cut into pieces.
struct Output {
  const std::function<bool(std::string)>& sink;
  std::string pending;
  bool stopped = false;

  bool flush() {
    if (pending.empty() || stopped) return !stopped;
    stopped = !sink(std::exchange(pending, {}));
    return !stopped;
  }
};

la_ssize_t write_output(archive*, void* data, const void* bytes, std::size_t count) {
  auto& output = *static_cast<Output*>(data);
  std::string_view rest(static_cast<const char*>(bytes), count);
  while (!rest.empty()) {
    const std::size_t room = kPieceBytes - output.pending.size();
    output.pending += rest.substr(0, room);
    rest.remove_prefix(std::min(room, rest.size()));
    if (output.pending.size() >= kPieceBytes && !output.flush()) return -1;
  }
  return static_cast<la_ssize_t>(count);
}

UniqueFd open_beneath(int directory, const std::string& path) {
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
}

struct FreeArchive {
  void operator()(archive* a) const { archive_write_free(a); }
};
struct FreeEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};

Status pack_file(archive* writer, int directory, const std::string& path) {
  UniqueFd file = open_beneath(directory, path);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno("checkpoint file " + path);
  if (!S_ISREG(status.st_mode))
    return fail(Code::kDataLoss, "checkpoint file " + path + " is no regular file");
  const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), path.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), status.st_size);
  archive_entry_set_mtime(entry.get(), status.st_mtime, 0);
  if (archive_write_header(writer, entry.get()) != ARCHIVE_OK) {
    return fail(Code::kCancelled, std::string("archive: ") + archive_error_string(writer));
  }
  std::string buffer(256 * 1024, '\0');
  for (std::int64_t left = status.st_size; left > 0;) {
    const ssize_t count = ::read(file.get(), buffer.data(), std::min<std::size_t>(buffer.size(), left));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("checkpoint file " + path);
    if (count == 0)
      return fail(Code::kDataLoss, "checkpoint file " + path + " became shorter while it was read");
    if (archive_write_data(writer, buffer.data(), static_cast<std::size_t>(count)) < 0) {
      return fail(Code::kCancelled, "the download was broken off");
    }
    left -= count;
  }
  return {};
}

/// Runs on a download worker, which waits for the client: few at a time, bounded memory.
class Download : public grpc::ServerWriteReactor<v1::DownloadCheckpointResponse> {
 public:
  Download(const Context& context, Credentials credentials, v1::DownloadCheckpointRequest request)
      : context_(context), credentials_(std::move(credentials)), request_(std::move(request)) {
    if (!context_.downloads.try_post([this] { Finish(to_grpc(watched())); })) {
      Finish(to_grpc(Error{Code::kUnavailable, "too many downloads at once; try again in a moment", {}}));
    }
  }
  void OnWriteDone(bool ok) override { written_.set_value(ok); }
  void OnDone() override { delete this; }

 private:
  /// A reader that is put out gets no further piece.
  Status watched() {
    constexpr const char* kMethod = "/det.v1.CheckpointService/DownloadCheckpoint";
    TRY(authorize(kMethod, credentials_, context_.pool, &request_));
    const auto id = context_.streams->open(kMethod, credentials_,
                                           std::make_shared<const v1::DownloadCheckpointRequest>(request_),
                                           [cut = cut_](const Error&) { *cut = true; });
    Status done = run();
    context_.streams->close(id);
    if (*cut_) return fail(Code::kUnauthenticated, "the right to read this has ended; log in again");
    return done;
  }

  Status run() {
    const CheckpointId uuid(request_.checkpoint_uuid());
    TRY_ASSIGN(const db::CheckpointRow row, db::get_checkpoint(context_.pool, uuid));
    TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, row.experiment));
    const std::string root = storage_root(experiment.config);
    if (root.empty()) return fail(Code::kFailedPrecondition, "the checkpoint's storage is not known");
    v1::Checkpoint checkpoint;
    to_proto(row, root, &checkpoint);
    std::vector<std::string> paths;
    for (const auto& [path, size] : checkpoint.resources()) {
      if (!path.ends_with('/')) paths.push_back(path);
    }
    std::sort(paths.begin(), paths.end());
    return pack_files(checkpoint.storage_path(), paths, [this](std::string piece) {
      if (*cut_) return false;
      written_ = {};
      response_.set_chunk(std::move(piece));
      auto written = written_.get_future();
      StartWrite(&response_);
      return written.get();
    });
  }

  const Context& context_;
  const Credentials credentials_;
  const v1::DownloadCheckpointRequest request_;
  const std::shared_ptr<std::atomic<bool>> cut_ = std::make_shared<std::atomic<bool>>(false);
  v1::DownloadCheckpointResponse response_;
  std::promise<bool> written_;
};

}  // namespace

Status pack_files(const std::string& directory, const std::vector<std::string>& paths,
                  const std::function<bool(std::string)>& sink) {
  UniqueFd root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    return fail(Code::kFailedPrecondition, "the master cannot read the checkpoint's directory " + directory +
                                               "; download it where the storage is mounted");
  }
  Output output{sink, {}};
  std::unique_ptr<archive, FreeArchive> writer(archive_write_new());
  archive_write_set_format_pax_restricted(writer.get());
  archive_write_add_filter_gzip(writer.get());
  archive_write_set_options(writer.get(), "gzip:compression-level=1,gzip:!timestamp");
  archive_write_set_bytes_per_block(writer.get(), 64 * 1024);
  // No padding behind the end of the gzip data.
  archive_write_set_bytes_in_last_block(writer.get(), 1);
  if (archive_write_open(writer.get(), &output, nullptr, write_output, nullptr) != ARCHIVE_OK) {
    return fail(Code::kInternal, std::string("archive: ") + archive_error_string(writer.get()));
  }
  for (const std::string& path : paths) TRY(pack_file(writer.get(), root.get(), path));
  if (archive_write_close(writer.get()) != ARCHIVE_OK || !output.flush()) {
    return fail(Code::kCancelled, "the download was broken off");
  }
  return {};
}

grpc::ServerUnaryReactor* CheckpointService::GetCheckpoint(grpc::CallbackServerContext* call,
                                                           const v1::GetCheckpointRequest* request,
                                                           v1::GetCheckpointResponse* response) {
  return unary(context_, call, request, "/det.v1.CheckpointService/GetCheckpoint",
               [this, request, response](const Caller& caller) -> Status {
                 TRY_ASSIGN(const db::CheckpointRow row,
                            db::get_checkpoint(context_.pool, CheckpointId(request->checkpoint_uuid())));
                 TRY(admit(context_, caller, {.experiment = row.experiment}));
                 TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, row.experiment));
                 to_proto(row, storage_root(experiment.config), response->mutable_checkpoint());
                 json_to_struct(
                     masked_json(experiment.config),
                     response->mutable_checkpoint()->mutable_training()->mutable_experiment_config());
                 return {};
               });
}

grpc::ServerWriteReactor<v1::DownloadCheckpointResponse>* CheckpointService::DownloadCheckpoint(
    grpc::CallbackServerContext* call, const v1::DownloadCheckpointRequest* request) {
  return new Download(context_, read_credentials(*call), *request);
}

}  // namespace det::api
