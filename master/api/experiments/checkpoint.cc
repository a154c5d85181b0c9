// Reads and downloads of CheckpointService.
#include "master/api/experiments/checkpoint.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <utility>

#include "common/base/release.h"
#include "det/v1/checkpoint.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/api/experiments/trial.h"
#include "master/api/streams/paced_stream.h"
#include "master/api/submit/secrets.h"

namespace det::api {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

/// Collects the output of libarchive into pieces.
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

Status pack_file(archive* writer, const std::string& path, const OpenFile& file) {
  const std::unique_ptr<archive_entry, ReleaseWith<archive_entry_free>> entry(archive_entry_new());
  archive_entry_set_pathname(entry.get(), path.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  // Permissions and owners of the storage are not copied.
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), file.size);
  archive_entry_set_mtime(entry.get(), file.changed, 0);
  if (archive_write_header(writer, entry.get()) != ARCHIVE_OK) {
    return fail(Code::kCancelled, std::string("archive: ") + archive_error_string(writer));
  }
  for (std::int64_t left = file.size; left > 0;) {
    TRY_ASSIGN(const std::string bytes, file.read(left));
    if (archive_write_data(writer, bytes.data(), bytes.size()) < 0) {
      return fail(Code::kCancelled, "the download was broken off");
    }
    left -= static_cast<std::int64_t>(bytes.size());
  }
  return {};
}

/// One download of a checkpoint as tar.gz, in pieces of 1 MiB.
class Download final : public PacedStream<v1::DownloadCheckpointRequest, v1::DownloadCheckpointResponse> {
 public:
  using PacedStream::PacedStream;

 private:
  Status run() override {
    TRY_ASSIGN(const db::CheckpointRow row,
               db::get_checkpoint(context_.stream_pool, CheckpointId(request().checkpoint_uuid())));
    TRY_ASSIGN(const auto experiment, db::get_experiment(context_.stream_pool, row.experiment));
    TRY_ASSIGN(const Json resources, parse_json(row.resources, {.bytes = 8 << 20, .depth = 4}));
    std::map<std::string, std::int64_t> files;
    for (const auto& [path, size] : resources.items()) {
      // Directories end with a slash and are not packed.
      if (!path.ends_with('/') && size.is_number_integer()) files[path] = size.get<std::int64_t>();
    }
    v1::DownloadCheckpointResponse response;
    const auto send_piece = [&](std::string piece) {
      response.set_chunk(std::move(piece));
      return send(response);
    };
    TRY_ASSIGN(const auto stored,
               StoredCheckpoint::open(*context_.storages->get(), experiment.config, row.uuid));
    return pack(stored, files, send_piece);
  }
};

}  // namespace

Status pack(const StoredCheckpoint& checkpoint, const std::map<std::string, std::int64_t>& files,
            const std::function<bool(std::string)>& sink) {
  Output output{sink, {}};
  std::unique_ptr<archive, ReleaseWith<archive_write_free>> writer(archive_write_new());
  archive_write_set_format_pax_restricted(writer.get());
  archive_write_add_filter_gzip(writer.get());
  // Level 1: checkpoints hardly compress, and the download should not be bound by the CPU.
  archive_write_set_options(writer.get(), "gzip:compression-level=1,gzip:!timestamp");
  archive_write_set_bytes_per_block(writer.get(), 64 * 1024);
  // The output ends with the gzip trailer, without padding.
  archive_write_set_bytes_in_last_block(writer.get(), 1);
  if (archive_write_open(writer.get(), &output, nullptr, write_output, nullptr) != ARCHIVE_OK) {
    return fail(Code::kInternal, std::string("archive: ") + archive_error_string(writer.get()));
  }
  for (const auto& [name, size] : files) {
    TRY_ASSIGN(const OpenFile file, checkpoint.file(name, size));
    TRY(pack_file(writer.get(), name, file));
  }
  if (archive_write_close(writer.get()) != ARCHIVE_OK || !output.flush()) {
    return fail(Code::kCancelled, "the download was broken off");
  }
  return {};
}

CheckpointService::CheckpointService(const Context& context)
    : Service(context, v1::CheckpointService::full_name) {
  unary(v1::CheckpointService::GetCheckpoint, &CheckpointService::GetCheckpoint);
  server_stream(v1::CheckpointService::DownloadCheckpoint, &CheckpointService::DownloadCheckpoint);
  unary(v1::CheckpointService::ReportCheckpoint, &CheckpointService::ReportCheckpoint);
  unary(v1::CheckpointService::PatchCheckpoints, &CheckpointService::PatchCheckpoints);
  unary(v1::CheckpointService::DeleteCheckpoints, &CheckpointService::DeleteCheckpoints,
        context_.pools.removal);
  unary(v1::CheckpointService::CheckpointsRemoveFiles, &CheckpointService::CheckpointsRemoveFiles,
        context_.pools.removal);
  unary(v1::CheckpointService::PostCheckpointMetadata, &CheckpointService::PostCheckpointMetadata);
}

Status CheckpointService::GetCheckpoint(const Caller& caller, const v1::GetCheckpointRequest& request,
                                        v1::GetCheckpointResponse* response) {
  TRY_ASSIGN(const db::CheckpointRow row,
             db::get_checkpoint(context_.pool, CheckpointId(request.checkpoint_uuid())));
  TRY(admit(context_, caller, {.experiment = row.experiment}));
  TRY_ASSIGN(const auto experiment, db::get_experiment(context_.pool, row.experiment));
  CheckpointConverter(experiment.config).convert(row, response->mutable_checkpoint());
  return {};
}

grpc::ServerWriteReactor<v1::DownloadCheckpointResponse>* CheckpointService::DownloadCheckpoint(
    grpc::CallbackServerContext* call, const Unread<v1::DownloadCheckpointRequest>& request) {
  return (new Download(context_, call, "/det.v1.CheckpointService/DownloadCheckpoint", request))->start();
}

}  // namespace det::api
