#include "master/api/facts.h"

#include <algorithm>
#include <map>

#include "master/db/queries_checkpoint.h"
#include "master/db/queries_config.h"
#include "master/db/queries_trial.h"
#include "master/db/queries_workspace.h"
#include "master/scheduler/fits.h"

namespace det::api {
namespace {

Result<std::vector<scheduler::PoolShape>> pools(const Context& context) {
  // Shared: the core may look at it after this call has given up waiting.
  auto found = std::make_shared<std::map<std::string, scheduler::PoolShape>>();
  (*found)[context.settings.default_pool] = {};
  const bool seen = context.loop.glance([found](const core::Core& core) {
    for (const auto& [id, agent] : core.agents()) {
      if (scheduler::PoolShape& pool = (*found)[agent.pool]; pool.name.empty()) {
        pool = scheduler::shape_of(agent.pool, core.agents_of(agent.pool));
      }
    }
  });
  if (!seen) return fail(Code::kUnavailable, "the master did not answer in time; try again in a moment");
  std::vector<scheduler::PoolShape> list;
  for (auto& [name, pool] : *found) {
    pool.name = name;
    list.push_back(std::move(pool));
  }
  return list;
}

}  // namespace

Result<expconf::ClusterFacts> cluster_facts(const Context& context, const Caller& caller) {
  expconf::ClusterFacts facts{.default_pool = context.settings.default_pool,
                              .launch_error = context.settings.launch_error,
                              .host_paths = context.settings.allowed_host_paths};
  TRY_ASSIGN(auto shapes, pools(context));
  for (const scheduler::PoolShape& pool : shapes) facts.pools.push_back(pool.name);
  facts.unfit = [shapes = std::move(shapes)](const std::string& pool, int slots, bool single_node) {
    const Status fits = scheduler::fits(shapes, pool, slots, single_node);
    return fits ? std::string() : fits.error().message;
  };
  facts.has_project = [&context, &caller](const std::string& workspace, const std::string& project) {
    const auto found = db::find_project(context.pool, workspace, project, caller.grants.visible());
    return found || found.error().code != Code::kNotFound;
  };
  facts.has_trial = [&context, &caller](std::int64_t id) {
    const auto seen = authorize(caller, Action::kView, Target::kTrial, {std::to_string(id)}, context.pool);
    if (!seen && seen.error().code == Code::kNotFound) return false;
    const auto trial = db::get_trial(context.pool, TrialId(id));
    if (!trial) return trial.error().code != Code::kNotFound;
    return !trial->trial.latest_checkpoint.empty();
  };
  facts.has_checkpoint = [&context, &caller](const std::string& uuid) {
    const auto seen = authorize(caller, Action::kView, Target::kCheckpoint, {uuid}, context.pool);
    if (!seen && seen.error().code == Code::kNotFound) return false;
    const auto checkpoint = db::get_checkpoint(context.pool, CheckpointId(uuid));
    return checkpoint ? checkpoint->state == "COMPLETED" : checkpoint.error().code != Code::kNotFound;
  };
  return facts;
}

}  // namespace det::api
