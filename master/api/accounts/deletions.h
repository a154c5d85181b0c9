// Deletes projects and workspaces with their contents on a thread of its own. The queue is in the database:
// a restarted master continues.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "det/v1/project.pb.h"
#include "master/api/context.h"
#include "master/db/queries/deletions.h"
#include "master/loop/workers.h"

namespace det::api {

/// Kills what runs in a container, deletes its ended experiments with their files, then the container.
class Deletions {
 public:
  /// Starts the thread. `context` must outlive this object.
  explicit Deletions(const Context& context);
  /// Ends the thread after the experiment that it deletes.
  ~Deletions() { stop(); }
  /// Deletes a container. Returns true if it is gone, false if its contents are deleted in the background.
  /// Repeatable, also after a failure. Blocks on the database. Errors: kNotFound; kFailedPrecondition
  /// (models).
  Result<bool> start(const db::Container& container);
  /// See the destructor. Idempotent.
  void stop();

 private:
  void tick();
  /// Deletes an empty container, after the core has been told to refuse submissions into it: a submission
  /// that the core has taken is durable by then, and the database refuses the deletion. Errors: as
  /// delete_container.
  Status remove(const db::Container& container);
  /// One step. Returns true when the container is gone, false while something in it still ends.
  Result<bool> advance(const db::Container& container);

  const Context& context_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> waiting_{true};  ///< deletions may be in progress
  loop::Workers worker_;
};

/// Returns the state of a deletion and sets its error. See db::Container for `deletion`.
template <typename Message>
void show_deletion(const std::optional<std::string>& deletion, Message* out) {
  if (!deletion) return;
  out->set_state(deletion->empty() ? v1::WORKSPACE_STATE_DELETING : v1::WORKSPACE_STATE_DELETE_FAILED);
  out->set_error_message(*deletion);
}

}  // namespace det::api
