// InteractiveService: notebooks, shells and TensorBoards.
#pragma once

#include "det/v1/interactive.pb.h"
#include "master/api/service.h"
#include "master/db/queries/commands.h"

namespace det::api {

/// An interactive task is a command with a program that the cluster chooses (interactive_launch.h). The calls
/// of the three kinds differ in their messages only.
class InteractiveService final : public Service {
 public:
  explicit InteractiveService(const Context& context);

 private:
  /// Lists the tasks of one kind that the caller may see, paged.
  template <typename Kind>
  Status list(const Caller& caller, const typename Kind::ListRequest& request,
              typename Kind::ListResponse* response);
  /// Returns a task and its configuration, secrets masked. Errors: kNotFound.
  template <typename Kind>
  Status get(const Caller& caller, const typename Kind::GetRequest& request,
             typename Kind::GetResponse* response);
  /// Errors: those of launch_command() and of interactive_config().
  template <typename Kind>
  Status launch(const Caller& caller, const typename Kind::LaunchRequest& request,
                typename Kind::LaunchResponse* response);
  /// Idempotent. Errors: kNotFound.
  template <typename Kind>
  Status kill(const Caller& caller, const typename Kind::KillRequest& request,
              typename Kind::KillResponse* response);
  /// Errors: those of CommandService::SetCommandPriority.
  template <typename Kind>
  Status set_priority(const Caller& caller, const typename Kind::PriorityRequest& request,
                      typename Kind::PriorityResponse* response);
  /// Restarts the idle time unless the notebook is idle. Errors: kNotFound.
  Status report_idle(const Caller& caller, const v1::IdleNotebookRequest& request,
                     v1::IdleNotebookResponse* response);

  template <typename Kind>
  void offer();
};

}  // namespace det::api
