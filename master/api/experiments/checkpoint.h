// CheckpointService: metadata of checkpoints, and their files as one archive.
#pragma once

#include <functional>
#include <map>

#include "det/v1/checkpoint.pb.h"
#include "master/api/service.h"
#include "master/api/submit/stored_checkpoint.h"
#include "master/db/queries/checkpoints.h"

namespace det::api {

/// Reads, changes and deletes checkpoints, and streams their files.
class CheckpointService final : public Service {
 public:
  explicit CheckpointService(const Context& context);
  /// Returns a checkpoint with the configuration of its experiment, secrets masked. Errors: kNotFound.
  Status GetCheckpoint(const Caller& caller, const v1::GetCheckpointRequest& request,
                       v1::GetCheckpointResponse* response);
  /// Streams the files as tar.gz in chunks of at most 1 MiB (paced_stream.h). Errors: kNotFound;
  /// kFailedPrecondition when the master cannot read the storage; kResourceExhausted when the caller has too
  /// many streams; kDeadlineExceeded when the client does not read.
  grpc::ServerWriteReactor<v1::DownloadCheckpointResponse>* DownloadCheckpoint(
      grpc::CallbackServerContext* call, const Unread<v1::DownloadCheckpointRequest>& request);
  // checkpoint_changes.cc

  /// Stores a completed checkpoint that a process of a trial reports. Idempotent by uuid. Errors:
  /// kInvalidArgument without metadata.steps_completed, or when the report exceeds the limits of
  /// report_check.h.
  Status ReportCheckpoint(const Caller& caller, const v1::ReportCheckpointRequest& request,
                          v1::ReportCheckpointResponse* response);
  /// Replaces the file lists of up to 1,000 checkpoints; an empty list marks a checkpoint DELETED. Removes no
  /// files. Errors: kNotFound; kFailedPrecondition for a version of a registered model.
  Status PatchCheckpoints(const Caller& caller, const v1::PatchCheckpointsRequest& request,
                          v1::PatchCheckpointsResponse* response);
  /// Marks up to 1,000 checkpoints DELETED and removes their files. Idempotent. Errors: kNotFound;
  /// kFailedPrecondition for a version of a model and for a checkpoint that a trial or an experiment still
  /// starts from; those of the storage, after which removal is retried in the background.
  Status DeleteCheckpoints(const Caller& caller, const v1::DeleteCheckpointsRequest& request,
                           v1::DeleteCheckpointsResponse* response);
  /// Removes the files that match the globs ("**/*.pt") and marks the checkpoints PARTIALLY_DELETED, or
  /// DELETED when no file is left. Idempotent. Errors: kNotFound; kInvalidArgument without globs;
  /// kFailedPrecondition for a version of a model, for a checkpoint that a trial would resume from, and when
  /// the master cannot reach the storage.
  Status CheckpointsRemoveFiles(const Caller& caller, const v1::CheckpointsRemoveFilesRequest& request,
                                v1::CheckpointsRemoveFilesResponse* response);
  /// Replaces the metadata. `steps_completed` keeps its value. Errors: kNotFound.
  Status PostCheckpointMetadata(const Caller& caller, const v1::PostCheckpointMetadataRequest& request,
                                v1::PostCheckpointMetadataResponse* response);
};

/// Packs files of a checkpoint as tar.gz and passes it to `sink` in pieces of at most 1 MiB. `files` maps
/// names to sizes in bytes. `sink` returns false to stop. Blocks. Errors: those of StoredCheckpoint,
/// kDataLoss when a file shrinks meanwhile, kCancelled when the sink stops.
Status pack(const StoredCheckpoint& checkpoint, const std::map<std::string, std::int64_t>& files,
            const std::function<bool(std::string)>& sink);

}  // namespace det::api
