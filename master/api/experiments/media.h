// MediaService: media that trials report, and the files that they write beside checkpoints.
#pragma once

#include "det/v1/media.pb.h"
#include "master/api/service.h"
#include "master/api/streams/harness_session.h"
#include "master/api/submit/trial_files.h"
#include "master/db/queries/media.h"

namespace det::api {

/// Contents are stored once per trial and content, rows in the database. A content is written before its
/// first row and deleted after its last one; a crash in between leaves a file that the next report of the
/// same content uses, or that is deleted with the experiment.
class MediaService final : public Service {
 public:
  MediaService(const Context& context, HarnessService& harness);
  /// Stores an entry. Idempotent. Errors: kInvalidArgument; kResourceExhausted above the quota of the trial;
  /// kFailedPrecondition when the master cannot write to the storage; those of find_reporter().
  Status ReportMedia(const Caller& caller, const v1::ReportMediaRequest& request,
                     v1::ReportMediaResponse* response);
  Status GetMedia(const Caller& caller, const v1::GetMediaRequest& request, v1::GetMediaResponse* response);
  /// Errors: kInvalidArgument, kNotFound, those of the storage.
  Status GetMediaContents(const Caller& caller, const v1::GetMediaContentsRequest& request,
                          v1::GetMediaContentsResponse* response);
  /// Lists what the master can reach; `note` of the response names the rest.
  Status GetTrialFiles(const Caller& caller, const v1::GetTrialFilesRequest& request,
                       v1::GetTrialFilesResponse* response);
  grpc::ServerWriteReactor<v1::DownloadTrialFileResponse>* DownloadTrialFile(
      grpc::CallbackServerContext* call, const Unread<v1::DownloadTrialFileRequest>& request);
  // The master keeps no requests for traces: the trial's process knows its own, and the stored trace answers
  // after its end. Defined in profile.cc.
  Status ProfileTrial(const Caller& caller, const v1::ProfileTrialRequest& request,
                      v1::TrialProfile* response);
  Status GetTrialProfile(const Caller& caller, const v1::GetTrialProfileRequest& request,
                         v1::TrialProfile* response);

 private:
  HarnessService& harness_;
};

/// Path of an entry among the files of its trial.
std::string media_path(const db::MediaRow& row);

/// Checks a report. Errors: kInvalidArgument naming the field.
Status check_media(const v1::ReportMediaRequest& request);

}  // namespace det::api
