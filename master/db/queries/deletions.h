// Deletion of projects and workspaces with their contents. The column `deletion` is the queue of the
// background thread, so that a restarted master continues.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// A project or workspace. Its column `deletion` is NULL without a deletion, "" during one, and the reason of
/// the failure after a failed one.
struct Container {
  enum class Kind { kProject, kWorkspace };
  Kind kind;
  std::int64_t id;
};

/// Objects that must be removed before their container can be deleted.
struct Contents {
  std::vector<ExperimentId> ended, live;  ///< experiments
  std::vector<TaskId> live_commands;      ///< of a workspace
  /// Models of a workspace. They are never deleted with it.
  std::int64_t models = 0;
};
/// Returns the contents. A missing container has none.
Result<Contents> contents_of(Pool& pool, const Container& container);

/// Returns an unfinished experiment that starts from a checkpoint of an experiment, if there is one. Those
/// inside `within` do not count: they are deleted, too.
Result<std::optional<ExperimentId>> started_from(Pool& pool, ExperimentId id,
                                                 const std::optional<Container>& within = std::nullopt);

/// Marks a deletion as in progress. Idempotent; replaces an earlier failure. Errors: kNotFound.
Status begin_deletion(Pool& pool, const Container& container);
/// Ends a deletion with the reason of its failure. A missing container is ignored.
Status fail_deletion(Pool& pool, const Container& container, const std::string& why);
/// Lists the deletions in progress.
Result<std::vector<Container>> deletions(Pool& pool);

/// Lists the projects that a deletion removes: the project itself, or those of the workspace. Errors:
/// kNotFound.
Result<std::vector<std::int64_t>> projects_in(Pool& pool, const Container& container);
/// Deletes a project without experiments, or a workspace with its templates, ended commands and those of
/// `projects` without experiments. Usage reports keep the commands. Errors: kFailedPrecondition (experiments,
/// other projects, models or live commands refer to it); kNotFound.
Status delete_container(Pool& pool, const Container& container, const std::vector<std::int64_t>& projects);

}  // namespace det::db
