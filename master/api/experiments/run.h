// RunService: search, bulk actions and metadata of trials. "Run" is Determined AI's name for a trial in this
// part of its API.
#pragma once

#include <functional>

#include "det/v1/run.pb.h"
#include "master/api/service.h"
#include "master/db/search/search.h"

namespace det::api {

/// Callers are users, and processes of the trial with its allocation token.
class RunService final : public Service {
 public:
  explicit RunService(const Context& context);
  /// Accepted for compatibility; returns no storage id. Idempotent.
  Status RunPrepareForReporting(const Caller& caller, const v1::RunPrepareForReportingRequest& request,
                                v1::RunPrepareForReportingResponse* response);
  /// Returns the metadata of a trial; empty when none is set. Errors: kNotFound.
  Status GetRunMetadata(const Caller& caller, const v1::GetRunMetadataRequest& request,
                        v1::GetRunMetadataResponse* response);
  /// Replaces the metadata. Idempotent. Errors: kNotFound; kInvalidArgument when it is too large.
  Status PostRunMetadata(const Caller& caller, const v1::PostRunMetadataRequest& request,
                         v1::PostRunMetadataResponse* response);
  /// Returns runs of visible experiments, paged, 100 by default. Errors: kInvalidArgument for an invalid
  /// filter or sort key.
  Status SearchRuns(const Caller& caller, const v1::SearchRunsRequest& request,
                    v1::SearchRunsResponse* response);
  // Bulk actions, on ids or a filter, at most 10,000 runs. The call succeeds; each run has its own result.
  // Errors: kInvalidArgument for an invalid filter, and without ids and filter.
  Status KillRuns(const Caller& caller, const v1::RunsActionRequest& request,
                  v1::RunsActionResponse* response);
  Status PauseRuns(const Caller& caller, const v1::RunsActionRequest& request,
                   v1::RunsActionResponse* response);
  Status ResumeRuns(const Caller& caller, const v1::RunsActionRequest& request,
                    v1::RunsActionResponse* response);
  Status ArchiveRuns(const Caller& caller, const v1::RunsActionRequest& request,
                     v1::RunsActionResponse* response);
  Status UnarchiveRuns(const Caller& caller, const v1::RunsActionRequest& request,
                       v1::RunsActionResponse* response);
  /// Blocks on storages.
  Status DeleteRuns(const Caller& caller, const v1::RunsActionRequest& request,
                    v1::RunsActionResponse* response);
  /// Moves the experiment of each run. Errors: kFailedPrecondition for an archived project.
  Status MoveRuns(const Caller& caller, const v1::MoveRunsRequest& request, v1::RunsActionResponse* response);

 private:
  /// Action on one run; bulk() applies it to many.
  using Deed = std::function<Status(const db::FoundRun&)>;
  /// Applies `deed` to each run of the search that the caller may edit.
  Status bulk(const Caller& caller, db::RunSearch search, v1::RunsActionResponse* response,
              const Deed& deed) const;
  /// Pauses or activates experiments that have one run.
  Status pause(const Caller& caller, const v1::RunsActionRequest& request, v1::RunsActionResponse* response,
               core::ExperimentAction action) const;
  /// As bulk(), with an action on the experiment of the run, which has no other run.
  Status bulk_alone(const Caller& caller, const v1::RunsActionRequest& request,
                    v1::RunsActionResponse* response, const std::function<Status(ExperimentId)>& deed) const;
};

}  // namespace det::api
