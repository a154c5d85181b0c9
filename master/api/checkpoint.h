// Owns CheckpointService: what is known of a checkpoint, and its files as one archive.
#pragma once

#include <functional>
#include <map>

#include "det/v1/checkpoint.pb.h"
#include "master/api/service.h"
#include "master/db/queries_checkpoint.h"
#include "storage/bucket.h"

namespace det::api {

class CheckpointService final : public Service {
 public:
  explicit CheckpointService(const Context& context);
  Status GetCheckpoint(const Caller& caller, const v1::GetCheckpointRequest& request,
                       v1::GetCheckpointResponse* response);
  grpc::ServerWriteReactor<v1::DownloadCheckpointResponse>* DownloadCheckpoint(
      grpc::CallbackServerContext* call, const v1::DownloadCheckpointRequest* request);
  // checkpoint_changes.cc
  Status ReportCheckpoint(const Caller& caller, const v1::ReportCheckpointRequest& request,
                          v1::ReportCheckpointResponse* response);
  Status PatchCheckpoints(const Caller& caller, const v1::PatchCheckpointsRequest& request,
                          v1::PatchCheckpointsResponse* response);
  Status DeleteCheckpoints(const Caller& caller, const v1::DeleteCheckpointsRequest& request,
                           v1::DeleteCheckpointsResponse* response);
  Status CheckpointsRemoveFiles(const Caller& caller, const v1::CheckpointsRemoveFilesRequest& request,
                                v1::CheckpointsRemoveFilesResponse* response);
  Status PostCheckpointMetadata(const Caller& caller, const v1::PostCheckpointMetadataRequest& request,
                                v1::PostCheckpointMetadataResponse* response);
};

/// Packs the files `paths` below `directory` as tar.gz and gives it to `sink` in pieces of at most 1 MiB;
/// `sink` says false to stop (kCancelled). No path leaves the directory, links included.
Status pack_files(const std::string& directory, const std::vector<std::string>& paths,
                  const std::function<bool(std::string)>& sink);
/// The same of objects below `start`: path → bytes.
Status pack_objects(const storage::Bucket& bucket, const std::string& start,
                    const std::map<std::string, std::int64_t>& paths,
                    const std::function<bool(std::string)>& sink);

}  // namespace det::api
