#include "master/api/experiments/media.h"

#include <algorithm>
#include <map>

#include "common/base/log.h"
#include "common/crypto/digest.h"
#include "common/storage/media_limits.h"
#include "det/v1/media.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/reporter.h"
#include "master/api/streams/paced_stream.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/media.h"

namespace det::api {
namespace {

constexpr int kMaxMediaTrials = 1000, kMaxMediaPage = 20'000;
constexpr std::size_t kMaxContents = 1000, kContentBytes = 8 << 20;
constexpr std::size_t kMaxTrialFiles = 10'000;
constexpr std::int64_t kFilePieceBytes = 1 << 20;
constexpr std::string_view kKindPrefix = "KIND_", kMediaPrefix = "media/",
                           kTensorboardPrefix = "tensorboard/";

std::string kind_text(v1::Media::Kind kind) { return v1::Media::Kind_Name(kind).substr(kKindPrefix.size()); }

void convert_media(const db::MediaRow& row, v1::Media& out) {
  v1::Media::Kind kind = v1::Media::KIND_UNSPECIFIED;
  v1::Media::Kind_Parse(std::string(kKindPrefix) + row.kind, &kind);
  out.set_trial_id(static_cast<std::int32_t>(row.trial.value));
  out.set_name(row.name);
  out.set_steps_completed(row.steps_completed);
  out.set_kind(kind);
  out.set_caption(row.caption);
  out.set_digest(row.digest);
  out.set_size(row.size);
  out.set_file_name(row.file_name);
  api::to_proto(row.reported, out.mutable_report_time());
}

/// Name of the file in downloads.
std::string file_name_of(const v1::ReportMediaRequest& request) {
  switch (request.kind()) {
    case v1::Media::KIND_IMAGE:
      return request.content().starts_with("\x89PNG") ? "image.png" : "image.jpg";
    case v1::Media::KIND_TEXT:
      return "text.txt";
    case v1::Media::KIND_HISTOGRAM:
      return "histogram.json";
    case v1::Media::KIND_TABLE:
      return "table.json";
    default:
      return request.file_name();
  }
}

/// Returns the digest in a path of media_path(); "" for others.
std::string digest_in(const std::string& path) {
  const std::string leaf = path.substr(path.rfind('/') + 1);
  const std::size_t dash = leaf.find('-');
  const std::string digest = dash == leaf.npos ? "" : leaf.substr(dash + 1, 64);
  return digest.find_first_not_of("0123456789abcdef") == digest.npos ? digest : "";
}

Result<TrialFiles> open_files(const Context& context, db::Pool& pool, TrialId id) {
  TRY_ASSIGN(const ExperimentId owner, db::experiment_of_trial(pool, id));
  TRY_ASSIGN(const auto experiment, db::get_experiment(pool, owner));
  return TrialFiles::open(*context.storages->get(), experiment.config,
                          {context.settings.cluster_id, owner, id});
}

/// One download of a file, in pieces of at most 1 MiB.
class FileDownload final : public PacedStream<v1::DownloadTrialFileRequest, v1::DownloadTrialFileResponse> {
 public:
  using PacedStream::PacedStream;

 private:
  Result<OpenFile> open() const {
    const TrialId trial(request().trial_id());
    const std::string& path = request().path();
    TRY_ASSIGN(const TrialFiles files, open_files(context_, context_.stream_pool, trial));
    if (path.starts_with(kTensorboardPrefix))
      return files.tensorboard_file(path.substr(kTensorboardPrefix.size()));
    if (!path.starts_with(kMediaPrefix))
      return fail(Code::kNotFound, "trial files are below media/ and tensorboard/");
    TRY_ASSIGN(const auto row, db::find_media(context_.stream_pool, trial, digest_in(path)));
    return files.media(row.digest, row.size);
  }
  Status run() override {
    TRY_ASSIGN(const OpenFile file, open());
    v1::DownloadTrialFileResponse response;
    // An event file grows while it is read; the size at the start is sent.
    for (std::int64_t left = file.size; left > 0;) {
      TRY_ASSIGN(std::string piece, file.read(std::min(left, kFilePieceBytes)));
      left -= static_cast<std::int64_t>(piece.size());
      response.set_chunk(std::move(piece));
      if (!send(response)) return fail(Code::kCancelled, "the download was broken off");
    }
    return {};
  }
};

}  // namespace

std::string media_path(const db::MediaRow& row) {
  return std::string(kMediaPrefix) + row.name + "/" + std::to_string(row.steps_completed) + "-" + row.digest +
         "-" + row.file_name;
}

MediaService::MediaService(const Context& context, HarnessService& harness)
    : Service(context, v1::MediaService::full_name), harness_(harness) {
  unary(v1::MediaService::ReportMedia, &MediaService::ReportMedia, context_.pools.outward);
  unary(v1::MediaService::GetMedia, &MediaService::GetMedia);
  unary(v1::MediaService::GetMediaContents, &MediaService::GetMediaContents, context_.pools.outward);
  unary(v1::MediaService::GetTrialFiles, &MediaService::GetTrialFiles, context_.pools.outward);
  server_stream(v1::MediaService::DownloadTrialFile, &MediaService::DownloadTrialFile);
  unary(v1::MediaService::ProfileTrial, &MediaService::ProfileTrial);
  unary(v1::MediaService::GetTrialProfile, &MediaService::GetTrialProfile);
}

Status MediaService::ReportMedia(const Caller& caller, const v1::ReportMediaRequest& request,
                                 v1::ReportMediaResponse* response) {
  const TrialId trial(request.trial_id());
  TRY_ASSIGN(const Reporter reporter, find_reporter(context_, caller, {.trial = trial}));
  TRY(check_media(request));
  TRY_ASSIGN(const TrialFiles files, open_files(context_, context_.pool, reporter.trial));
  const db::MediaRow row{.trial = trial,
                         .name = request.name(),
                         .steps_completed = request.steps_completed(),
                         .kind = kind_text(request.kind()),
                         .caption = request.caption(),
                         .digest = sha256_hex(request.content()),
                         .size = static_cast<std::int64_t>(request.content().size()),
                         .file_name = file_name_of(request),
                         .reported = {}};
  response->set_digest(row.digest);
  const auto remove = [&](const std::string& digest) {
    // A file that stays is deleted with the experiment.
    if (const Status done = files.remove_media(digest); !done)
      log::warn("replaced media could not be deleted", {{"trial", trial}, {"reason", done.error().message}});
  };
  return db::put_media(context_.pool, row, {kMaxMediaEntries, kMaxMediaTrialBytes},
                       {[&] { return files.put_media(row.digest, request.content()); }, remove});
}

Status MediaService::GetMedia(const Caller&, const v1::GetMediaRequest& request,
                              v1::GetMediaResponse* response) {
  if (request.trial_ids_size() > kMaxMediaTrials)
    return fail(Code::kInvalidArgument, "trial_ids: at most " + std::to_string(kMaxMediaTrials));
  if (request.limit() < 0 || request.limit() > kMaxMediaPage || request.offset() < 0)
    return fail(Code::kInvalidArgument,
                "limit: 0 to " + std::to_string(kMaxMediaPage) + " are expected; offset: 0 or more");
  std::vector<TrialId> trials;
  for (const std::int32_t id : request.trial_ids()) trials.emplace_back(id);
  TRY_ASSIGN(const auto page,
             db::list_media(context_.pool, trials,
                            {.offset = request.offset(),
                             .limit = request.limit() == 0 ? kMaxMediaPage : request.limit()}));
  for (const db::MediaRow& row : page.rows) convert_media(row, *response->add_media());
  response->set_total(static_cast<std::int32_t>(page.total));
  return {};
}

Status MediaService::GetMediaContents(const Caller&, const v1::GetMediaContentsRequest& request,
                                      v1::GetMediaContentsResponse* response) {
  if (request.trial_ids_size() != request.digests_size() ||
      static_cast<std::size_t>(request.digests_size()) > kMaxContents)
    return fail(Code::kInvalidArgument,
                "digests: one trial id per digest is expected, and at most " + std::to_string(kMaxContents));
  std::vector<TrialId> trials;
  for (const std::int32_t id : request.trial_ids()) trials.emplace_back(id);
  const std::vector<std::string> digests(request.digests().begin(), request.digests().end());
  TRY_ASSIGN(const auto found, db::find_contents(context_.pool, trials, digests));
  std::map<ExperimentId, TrialFiles> opened;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    bytes += static_cast<std::size_t>(found[i].size);
    if (i > 0 && bytes > kContentBytes) break;
    auto files = opened.find(found[i].experiment);
    if (files == opened.end()) {
      TRY_ASSIGN(TrialFiles made, open_files(context_, context_.pool, trials[i]));
      files = opened.emplace(found[i].experiment, std::move(made)).first;
    }
    TRY_ASSIGN(const OpenFile file, files->second.of(trials[i]).media(digests[i], found[i].size));
    TRY_ASSIGN(*response->add_contents(), read_all(file, static_cast<std::int64_t>(kMaxMediaBytes)));
  }
  return {};
}

Status MediaService::GetTrialFiles(const Caller&, const v1::GetTrialFilesRequest& request,
                                   v1::GetTrialFilesResponse* response) {
  const TrialId trial(request.trial_id());
  const auto add = [&](const std::string& path, std::int64_t size, WallTime changed) {
    v1::TrialFile* file = response->add_files();
    file->set_path(path);
    file->set_size(size);
    to_proto(changed, file->mutable_change_time());
  };
  TRY_ASSIGN(const auto media,
             db::list_media(context_.pool, {trial}, {.limit = static_cast<std::int64_t>(kMaxTrialFiles)}));
  for (const db::MediaRow& row : media.rows) add(media_path(row), row.size, row.reported);
  const auto files = open_files(context_, context_.pool, trial);
  if (!files) {
    if (files.error().code != Code::kFailedPrecondition) return tl::unexpected(files.error());
    response->set_note("TensorBoard files: " + files.error().message);
    return {};
  }
  if (files->in_bucket())
    response->set_note(
        "TensorBoard files end with the run that writes them, because the storage is a bucket");
  const std::size_t left = kMaxTrialFiles - std::min(media.rows.size(), kMaxTrialFiles);
  TRY_ASSIGN(auto listed, files->tensorboard_files(left + 1));
  response->set_truncated(listed.size() > left || media.total > static_cast<std::int64_t>(kMaxTrialFiles));
  if (listed.size() > left) listed.resize(left);
  for (const storage::TreeFile& file : listed)
    add(std::string(kTensorboardPrefix) + file.path, file.size, WallTime{file.changed * 1'000'000});
  return {};
}

grpc::ServerWriteReactor<v1::DownloadTrialFileResponse>* MediaService::DownloadTrialFile(
    grpc::CallbackServerContext* call, const Unread<v1::DownloadTrialFileRequest>& request) {
  return (new FileDownload(context_, call, "/det.v1.MediaService/DownloadTrialFile", request))->start();
}

}  // namespace det::api
