#include "master/api/streams/session_subject.h"

#include <memory>
#include <optional>

#include "common/base/secret.h"
#include "common/base/text.h"

namespace det::api {
namespace {

/// Result of a lookup in the core.
struct FoundSession {
  bool current = false;         ///< the run is the current one of its trial
  bool stranger = false;        ///< the allocation is live, and the token is not one of its parts
  std::optional<UserId> owner;  ///< set for a trial outside the cluster
  SessionSubject subject;
};

void fill_subject(const core::Core& core, const core::Trial& trial, SessionSubject& subject) {
  subject.experiment = trial.experiment;
  subject.task = trial.task;
  auto experiment = core.experiments().find(trial.experiment);
  if (experiment == core.experiments().end()) return;
  subject.owner = {experiment->second.owner, experiment->second.workspace};
  subject.started = trial.started;
  subject.metric = experiment->second.config->searcher.metric;
  subject.time = experiment->second.config->searcher.time_name();
}

}  // namespace

Result<SessionSubject> find_allocation(const Context& context, const Credentials& credentials,
                                       const AllocationId& id, TrialId trial, RunNumber run) {
  auto found = std::make_shared<FoundSession>();
  TRY(context.loop.inspect(
      [found, id, trial, run, hash = token_hash(credentials.allocation_token)](const core::Core& core) {
        auto allocation = core.allocations().find(id);
        if (allocation == core.allocations().end()) return;
        found->stranger = !allocation->second.has_token(hash);
        if (allocation->second.task != trial || allocation->second.run != run) return;
        auto row = core.trials().find(trial);
        if (row == core.trials().end()) return;
        found->current = true;
        fill_subject(core, row->second, found->subject);
      }));
  if (found->stranger)
    return fail(Code::kUnauthenticated, "the token is not that of allocation " + make_utf8(id.value));
  // Tokens of ended allocations are forgotten with them, so this answer needs no valid token.
  if (!found->current) return fail(Code::kAborted, "this run is not the trial's current one; leave");
  found->subject.allocation = id;
  return found->subject;
}

Result<SessionSubject> find_detached(const Context& context, const Credentials& credentials, TrialId trial,
                                     RunNumber run) {
  const auto session = context.sessions->find(token_hash(credentials.user_token));
  auto found = std::make_shared<FoundSession>();
  const Status seen = context.loop.inspect([found, trial, run](const core::Core& core) {
    auto row = core.trials().find(trial);
    if (row == core.trials().end() || core::is_terminal(row->second.state) || row->second.run != run) return;
    auto experiment = core.experiments().find(row->second.experiment);
    if (experiment == core.experiments().end()) return;
    found->current = true;
    if (experiment->second.detached) found->owner = experiment->second.owner;
    fill_subject(core, row->second, found->subject);
  });
  if (!session && session.error().code != Code::kNotFound) return tl::unexpected(session.error());
  if (!session) return fail(Code::kUnauthenticated, "the session has ended; log in again");
  if (session->limited)
    return fail(Code::kUnauthenticated, "an access token of a lesser role does not report");
  TRY(seen);
  if (!found->current) return fail(Code::kAborted, "the trial has ended or does not exist");
  if (!found->owner)
    return fail(Code::kPermissionDenied, "a trial of the cluster reports with its allocation's token");
  if (*found->owner != session->user.id) return fail(Code::kPermissionDenied, "the trial is another user's");
  found->subject.allocation = AllocationId(found->subject.task.value + "." + std::to_string(run));
  return found->subject;
}

}  // namespace det::api
