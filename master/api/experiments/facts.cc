#include "master/api/experiments/facts.h"

#include <algorithm>

#include "master/db/queries/checkpoints.h"
#include "master/db/queries/projects.h"
#include "master/db/queries/trials.h"
#include "master/db/queries/workspaces.h"

namespace det::api {

Pools::Pools(const Context& context)
    : found_(std::make_shared<std::map<std::string, scheduler::PoolShape>>(
          std::map<std::string, scheduler::PoolShape>{{context.settings.default_pool, {}}})),
      // Uncommitted reads are sufficient: the core checks the submission again.
      read_(context.loop.inspect_uncommitted([found = found_](const core::Core& core) {
        for (const auto& [name, rules] : core.providers()) (*found)[name] = core.shape_of(name);
        for (const auto& [id, agent] : core.agents()) {
          // The shape of a pool is computed once, at its first agent.
          if (scheduler::PoolShape& pool = (*found)[agent.pool]; pool.name.empty()) {
            pool = core.shape_of(agent.pool);
          }
        }
      })) {}

Result<std::vector<scheduler::PoolShape>> Pools::take() {
  if (!read_.wait())
    return fail(Code::kUnavailable, "the master did not answer in time; try again in a moment");
  std::vector<scheduler::PoolShape> list;
  for (auto& [name, pool] : *found_) {
    pool.name = name;
    list.push_back(std::move(pool));
  }
  return list;
}

expconf::Defaults settings_defaults(const Settings& settings) {
  expconf::Defaults defaults;
  defaults.checkpoint_storage = settings.checkpoint_storage;
  defaults.task_container_defaults = settings.task_defaults.config;
  defaults.pool_task_defaults = settings.pool_task_defaults;
  defaults.default_pool = settings.default_pool;
  return defaults;
}

Result<expconf::ClusterFacts> cluster_facts(const Context& context, const Caller& caller, Pools& pools,
                                            std::int64_t workspace) {
  expconf::ClusterFacts facts{.default_pool = context.settings.default_pool,
                              .launch_error = context.settings.launch_error,
                              .host_paths = context.settings.allowed_host_paths};
  TRY_ASSIGN(auto shapes, pools.take());
  TRY_ASSIGN(const auto closed, db::closed_pools(context.pool, workspace));
  for (const scheduler::PoolShape& pool : shapes)
    if (!closed.contains(pool.name)) facts.pools.push_back(pool.name);
  facts.unfit = [shapes = std::move(shapes)](const std::string& pool, int slots, bool single_node) {
    const Status fits = scheduler::fits(shapes, pool, slots, single_node);
    return fits ? std::string() : fits.error().message;
  };
  facts.storage_refusal = [policy = context.storages->get()](const Json& storage) {
    const Status allowed = policy->check(storage);
    return allowed ? std::string() : allowed.error().message;
  };
  facts.has_project = [&context, &caller](const std::string& named, const std::string& project) {
    // Only a definite kNotFound is a defect of the configuration.
    const auto found = db::find_project(context.pool, named, project, caller.grants.visible());
    return found || found.error().code != Code::kNotFound;
  };
  facts.has_trial = [&context, &caller](std::int64_t id) {
    // An authorization that fails for any reason hides the trial.
    if (!authorize(caller, Action::kView, Target::kTrial, {std::to_string(id)}, context.pool)) return false;
    // A trial can only be a source if it has a checkpoint.
    const auto trial = db::get_trial(context.pool, TrialId(id));
    if (!trial) return trial.error().code != Code::kNotFound;
    return !trial->trial.latest_checkpoint.empty();
  };
  facts.has_checkpoint = [&context, &caller](const std::string& uuid) {
    if (!authorize(caller, Action::kView, Target::kCheckpoint, {uuid}, context.pool)) return false;
    const auto checkpoint = db::get_checkpoint(context.pool, CheckpointId(uuid));
    return checkpoint ? checkpoint->state == "COMPLETED" : checkpoint.error().code != Code::kNotFound;
  };
  return facts;
}

Status check_storage_of_part(const Context& context, const YamlNode& document, const std::string& file) {
  const YamlNode* section = document.find("checkpoint_storage");
  if (section == nullptr || !section->is_map()) return {};
  const auto policy = context.storages->get();
  const Json storage = to_json(*section);
  const YamlNode* name = section->find("name");
  Status allowed;
  if (name != nullptr && name->kind == YamlNode::Kind::kString) {
    if (const auto known = policy->section_of(name->text, 0); !known) allowed = tl::unexpected(known.error());
  } else if (storage::is_bucket(storage) || !storage::directory_of(storage).empty()) {
    // Counts of checkpoints may stand alone; the location comes from another layer.
    allowed = policy->check(storage);
  }
  if (allowed) return {};
  return fail({Problem{.code = "E-CFG-SECURITY",
                       .path = "checkpoint_storage",
                       .message = allowed.error().message,
                       .file = file,
                       .line = section->line,
                       .column = section->column}});
}

}  // namespace det::api
