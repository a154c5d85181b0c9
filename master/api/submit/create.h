// Submission of experiments: parses the configuration, checks and stores the code archive, and submits to
// the core.
#pragma once

#include <optional>
#include <string>

#include "common/expconf/parse.h"
#include "det/v1/experiment.pb.h"
#include "master/api/auth/authorize.h"
#include "master/api/context.h"

namespace det::api {

/// Creates an experiment. `archive` is the code archive if it was uploaded in chunks; otherwise the files of
/// the request are packed. Idempotent with a request_id. With validate_only nothing is stored.
/// Blocks on the database and the core. Errors: kInvalidArgument with all problems of the configuration, in
/// which case nothing is stored; kAlreadyExists for a request_id of another user; kNotFound,
/// kPermissionDenied and kFailedPrecondition for the project.
Status create_experiment(const Context& context, const Caller& caller,
                         const v1::CreateExperimentRequest& request, std::optional<std::string> archive,
                         v1::CreateExperimentResponse* response);

/// Returns user and group that a task runs as: `uid`, `user`, `gid`, `group`. Those of the workspace
/// (WorkspaceRow::agent_account; "": none) precede those of the caller, and these the default of the cluster.
/// Null: the agent chooses.
Result<Json> task_account(const Context& context, const Caller& caller, const std::string& of_workspace);

/// Returns a template as a layer of a configuration. Errors: a Problem with similar names when there is no
/// such template or the caller may not see it.
Result<expconf::Document> template_of(const Context& context, const Caller& caller, const std::string& name);

/// Default name of an experiment: "Experiment (word-word-word)".
std::string random_name();

}  // namespace det::api
