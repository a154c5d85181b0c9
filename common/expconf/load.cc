// Conversion of a resolved configuration to the struct.
#include "common/expconf/sections.h"
#include "common/storage/location.h"

namespace det::expconf {
namespace {

/// Copies a member if it is present and not null; otherwise the default of the struct stays.
template <typename T>
void take(T& target, const Json& from, const char* name) {
  const auto found = from.find(name);
  if (found != from.end() && !found->is_null()) target = found->get<T>();
}
template <typename T>
void take(std::optional<T>& target, const Json& from, const char* name) {
  const auto found = from.find(name);
  if (found != from.end() && !found->is_null()) target = found->get<T>();
}

SearcherConfig load_searcher(const Json& from) {
  SearcherConfig searcher;
  take(searcher.name, from, "name");
  take(searcher.metric, from, "metric");
  take(searcher.smaller_is_better, from, "smaller_is_better");
  take(searcher.max_trials, from, "max_trials");
  take(searcher.max_concurrent_trials, from, "max_concurrent_trials");
  take(searcher.divisor, from, "divisor");
  take(searcher.num_rungs, from, "num_rungs");
  take(searcher.mode, from, "mode");
  take(searcher.max_rungs, from, "max_rungs");
  take(searcher.bracket_rungs, from, "bracket_rungs");
  take(searcher.rung_policy, from, "rung_policy");
  take(searcher.sampler, from, "sampler");
  take(searcher.time_metric, from, "time_metric");
  take(searcher.max_time, from, "max_time");
  take(searcher.source_trial_id, from, "source_trial_id");
  take(searcher.source_checkpoint_uuid, from, "source_checkpoint_uuid");
  if (from.contains("max_length")) searcher.max_length = load_length(from.at("max_length"));
  return searcher;
}

Resources load_resources(const Json& from) {
  Resources resources;
  take(resources.slots_per_trial, from, "slots_per_trial");
  take(resources.resource_pool, from, "resource_pool");
  take(resources.priority, from, "priority");
  take(resources.max_slots, from, "max_slots");
  take(resources.weight, from, "weight");
  take(resources.is_single_node, from, "is_single_node");
  return resources;
}

CheckpointStorage load_storage(const Json& from) {
  CheckpointStorage storage;
  // Null if no layer names a storage.
  if (from.is_null()) return storage;
  take(storage.type, from, "type");
  take(storage.host_path, from, "host_path");
  take(storage.storage_path, from, "storage_path");
  take(storage.container_path, from, "container_path");
  // Buckets are addressed by one name everywhere behind this point.
  if (storage.type == "s3") {
    storage::Location bucket;
    take(bucket.bucket, from, "bucket");
    take(bucket.prefix, from, "prefix");
    storage.container_path = bucket.name();
  }
  take(storage.save_experiment_best, from, "save_experiment_best");
  take(storage.save_trial_best, from, "save_trial_best");
  take(storage.save_trial_latest, from, "save_trial_latest");
  return storage;
}

std::map<std::string, std::string> load_variables(const Json& by_device) {
  std::map<std::string, std::string> variables;
  // cuda's value wins where both devices set a variable.
  for (const char* device : {"cpu", "cuda"}) {
    for (const Json& assignment : by_device.at(device)) {
      const auto& text = assignment.get_ref<const std::string&>();
      const std::size_t equals = text.find('=');
      variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return variables;
}

}  // namespace

ExperimentConfig load(Json resolved) {
  ExperimentConfig config;
  take(config.name, resolved, "name");
  take(config.description, resolved, "description");
  take(config.labels, resolved, "labels");
  config.data = nlohmann::json(resolved.at("data"));
  take(config.workspace, resolved, "workspace");
  take(config.project, resolved, "project");
  const Json& entrypoint = resolved.at("entrypoint");
  config.entrypoint_is_list = entrypoint.is_array();
  if (entrypoint.is_array()) {
    config.entrypoint = entrypoint.get<std::vector<std::string>>();
  } else {
    config.entrypoint = {entrypoint.get<std::string>()};
  }
  take(config.max_restarts, resolved, "max_restarts");
  config.hyperparameters = load_hyperparameters(resolved.at("hyperparameters"));
  config.searcher = load_searcher(resolved.at("searcher"));
  config.resources = load_resources(resolved.at("resources"));
  config.environment_variables = load_variables(resolved.at("environment").at("environment_variables"));
  config.checkpoint_storage = load_storage(resolved.at("checkpoint_storage"));
  take(config.checkpoint_policy, resolved, "checkpoint_policy");
  config.min_checkpoint_period = load_length(resolved.at("min_checkpoint_period"));
  config.min_validation_period = load_length(resolved.at("min_validation_period"));
  take(config.perform_initial_validation, resolved, "perform_initial_validation");
  take(config.records_per_epoch, resolved, "records_per_epoch");
  take(config.scheduling_unit, resolved, "scheduling_unit");
  take(config.experiment_seed, resolved.at("reproducibility"), "experiment_seed");
  take(config.preemption_timeout, resolved, "preemption_timeout");
  take(config.hang_timeout, resolved, "hang_timeout");
  take(config.debug, resolved, "debug");
  config.resolved = std::move(resolved);
  return config;
}

}  // namespace det::expconf
