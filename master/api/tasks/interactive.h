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
  Status list(const Caller& caller, const typename decltype(Kind::list)::Request& request,
              typename decltype(Kind::list)::Response* response);
  /// Returns a task and its configuration, secrets masked. Errors: kNotFound.
  template <typename Kind>
  Status get(const Caller& caller, const typename decltype(Kind::get)::Request& request,
             typename decltype(Kind::get)::Response* response);
  /// Errors: those of launch_command() and of interactive_config().
  template <typename Kind>
  Status launch(const Caller& caller, const typename decltype(Kind::launch)::Request& request,
                typename decltype(Kind::launch)::Response* response);
  /// Idempotent. Errors: kNotFound.
  template <typename Kind>
  Status kill(const Caller& caller, const typename decltype(Kind::kill)::Request& request,
              typename decltype(Kind::kill)::Response* response);
  /// Errors: those of CommandService::SetCommandPriority.
  template <typename Kind>
  Status set_priority(const Caller& caller, const typename decltype(Kind::set_priority)::Request& request,
                      typename decltype(Kind::set_priority)::Response* response);
  /// Restarts the idle time unless the notebook is idle. Errors: kNotFound.
  Status report_idle(const Caller& caller, const v1::IdleNotebookRequest& request,
                     v1::IdleNotebookResponse* response);

  template <typename Kind>
  void offer();
};

}  // namespace det::api
