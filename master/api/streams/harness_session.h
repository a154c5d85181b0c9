// HarnessService: one stream per training process. Reports are validated; those that the searcher needs go to
// the core, metrics to the bulk writer. Durable reports are acknowledged in order.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "det/v1/harness.pb.h"
#include "master/api/experiments/report_check.h"
#include "master/api/service.h"

namespace det::api {

class HarnessSession;

/// Bytes of the id of a request for a trace.
inline constexpr std::size_t kMaxProfileId = 64;

/// Session state lives on the edge worker.
class HarnessService final : public Service {
 public:
  explicit HarnessService(const Context& context);
  /// The stream of a process: Attach, then reports with growing sequence numbers. Each is acknowledged once
  /// it is durable. After a reconnect the process repeats unacknowledged reports; every report is idempotent.
  /// Errors: kAborted when the run is not the current one of its trial, or a newer session has replaced this
  /// one.
  grpc::ServerBidiReactor<v1::HarnessMessage, v1::MasterMessage>* Session(grpc::CallbackServerContext* call);

  /// Reports that the latest checkpoint of the trial is damaged. It is marked ERROR, and the trial resumes
  /// from the previous one, which is returned. Idempotent. Only before the first report of a run. Errors:
  /// kInvalidArgument when the checkpoint is not one of the trial; kFailedPrecondition after a report.
  /// Defined in checkpoint_changes.cc.
  Status FallBack(const Caller& caller, const v1::FallBackRequest& request, v1::FallBackResponse* response);

  /// Passes a request for a trace to the session of a trial and returns its progress. Idempotent. Errors:
  /// kFailedPrecondition (no session, its process takes no such requests, or another one is in progress);
  /// kUnavailable. Blocks, like profile_status(), until the edge worker replies.
  Result<v1::ProfileStatus> profile(TrialId trial, const v1::ProfileBatches& request);
  /// Returns the progress of a request. Errors: kNotFound (the session does not know it, or there is none).
  Result<v1::ProfileStatus> profile_status(TrialId trial, const std::string& request_id);
  /// Sends a preemption signal to the session of an allocation, if there is one. Any thread.
  void preempt(const AllocationId& id);
  /// Retries batches that found the bulk writer full. Called on the edge worker several times a second.
  void tick();
  /// Ends all sessions with kUnavailable; clients reconnect. Called on the edge worker.
  void close();

 private:
  friend class HarnessSession;
  using AskSession = std::function<Result<v1::ProfileStatus>(HarnessSession&)>;
  /// Calls `ask` with the session of a trial on the edge worker, and blocks for its result; `without` is the
  /// code of the error when there is no session.
  Result<v1::ProfileStatus> ask_session(TrialId trial, Code without, AskSession ask);
  // The members below belong to the edge worker.
  std::map<AllocationId, std::weak_ptr<HarnessSession>> sessions_;
  bool closed_ = false;
};

/// Returns a number from the JSON object of a report, or nothing when it is absent or not a number.
std::optional<double> metric_value(const std::string& metrics, const std::string& name);

}  // namespace det::api
