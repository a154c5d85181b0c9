#include "master/api/auth/sessions.h"

#include <functional>
#include <memory>

#include "master/api/auth/access.h"

namespace det::api {

template <typename Query>
Result<db::Session> Sessions::cached(const std::string& key, const std::atomic<std::uint64_t>& changes,
                                     const Query& query) {
  // A direct-mapped cache: its size is fixed, and tokens do not share a lock.
  Shared<Known>& place = known_[std::hash<std::string>()(key) % known_.size()];
  const auto known = place.get();
  if (known && known->key == key && known->generation == generation_ && known->changes == changes &&
      mono_now() - known->asked < kMaxAge && wall_now() < known->session.expires)
    return known->session;
  // The counters are read before the query: a change meanwhile may be missing from the result.
  Known fresh{.key = key, .session = {}, .generation = generation_, .changes = changes, .asked = mono_now()};
  TRY_ASSIGN(fresh.session, query());
  const auto found = std::make_shared<const Known>(std::move(fresh));
  place.set(found);
  return found->session;
}

Result<db::Session> Sessions::find(const std::string& token_hash) {
  return cached(token_hash, no_changes_, [&] { return db::find_session(pool_, token_hash); });
}

Result<db::Session> Sessions::find_task(const AllocationId& allocation, const std::string& token_hash) {
  if (!task_tokens_) return fail(Code::kNotFound, "task_user_tokens is off");
  // Allocation ids are TASK.RUN.
  const TaskId task{allocation.value.substr(0, allocation.value.rfind('.'))};
  return cached(allocation.value + " " + token_hash, changes_of(task),
                [&] { return db::find_task_session(pool_, allocation, token_hash); });
}

std::atomic<std::uint64_t>& Sessions::changes_of(const TaskId& task) {
  return task_changes_[std::hash<std::string>()(task.value) % task_changes_.size()];
}

Status Sessions::check_allocation(const std::string& token_hash) {
  if (!allocations_) return fail(Code::kUnauthenticated, "no allocation runs here");
  return allocations_->check(token_hash);
}

bool changes_rights(std::string_view method) {
  const Access* const entry = access(method);
  if (!entry || !is_change(*entry)) return false;
  // Workspaces and projects are included because moving and deleting them changes visibility; joining because
  // it concerns agents' certificates.
  for (const std::string_view service :
       {"/det.v1.AuthService/", "/det.v1.UserService/", "/det.v1.TokenService/", "/det.v1.RoleService/",
        "/det.v1.GroupService/", "/det.v1.WorkspaceService/", "/det.v1.ProjectService/",
        "/det.v1.JoinService/"})
    if (method.starts_with(service)) return true;
  return false;
}

}  // namespace det::api
