// Files of a trial's checkpoint: writing their texts, reading and applying their contents.
#include "harness/src/checkpoint/checkpoint.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/files.h"
#include "det/checkpoint.h"
#include "harness/src/base/or_throw.h"
#include "harness/src/base/torch_compat.h"
#include "harness/src/checkpoint/checkpoint_dir.h"
#include "harness/src/checkpoint/checkpoint_parts.h"
#include "harness/src/checkpoint/safetensors.h"
#include "harness/src/checkpoint/state.h"

namespace det {
namespace {

constexpr char kStateDict[] = "/state_dict.pth", kTrialState[] = "/trial_state.json";

/// The progress as fields of trial_state.json.
Json to_json(const Progress& progress) {
  return {{"steps_completed", progress.steps_completed},
          {"last_validation", progress.last_validation},
          {"last_checkpoint", progress.last_checkpoint},
          {"validation_due", progress.validation_due},
          {"stop_length", progress.stop_length},
          {"best_validation", progress.best_validation ? json_double(*progress.best_validation) : Json()}};
}

/// Reverses to_json(). kDataLoss when a counter is missing or not an integer.
Result<Progress> progress_from_json(const Json& json) {
  Progress progress;
  for (auto [name, counter] : {std::pair{"steps_completed", &progress.steps_completed},
                               std::pair{"last_validation", &progress.last_validation},
                               std::pair{"last_checkpoint", &progress.last_checkpoint}}) {
    const Json* value = json.is_object() ? find_path(json, name) : nullptr;
    if (value == nullptr || !value->is_number_integer()) {
      return fail(Code::kDataLoss, std::string("trial_state.json: ") + name + " is missing");
    }
    *counter = value->get<std::int64_t>();
  }
  const Json* due = find_path(json, "validation_due");  // absent in checkpoints of the first release
  progress.validation_due = due != nullptr && due->is_boolean() && due->get<bool>();
  const Json* stop = find_path(json, "stop_length");  // absent in earlier checkpoints
  if (stop != nullptr && stop->is_number_integer()) progress.stop_length = stop->get<std::int64_t>();
  // Optional: there is none before the first validation or without a searcher metric.
  const Json* best = find_path(json, "best_validation");
  if (best != nullptr && !best->is_null()) progress.best_validation = read_double(*best);
  return progress;
}

Json read_json(const std::string& path) {
  auto value = parse_json(value_or_throw(read_file(path, kMaxTrialStateBytes)),
                          {.bytes = static_cast<std::size_t>(kMaxTrialStateBytes)});
  if (!value) throw std::runtime_error(path + ": " + value.error().message);
  return std::move(*value);
}

/// Path of the file with the tensors. Earlier releases of Determined AI's Python library used other names.
std::string state_file(const std::string& directory) {
  for (const char* name :
       {kStateDict, "/determined/state_dict.pth", "/pedl/state_dict.pth", "/checkpoint.pt"}) {
    if (path_exists(directory + name)) return directory + name;
  }
  throw std::runtime_error(directory + ": no checkpoint is there (it has no state_dict.pth)");
}

const pickle::Value& model_at(const std::vector<const pickle::Value*>& models, int index,
                              const std::string& directory) {
  if (index >= 0 && static_cast<std::size_t>(index) < models.size()) return *models[index];
  throw std::runtime_error(directory + ": holds no model " + std::to_string(index) + "; it holds " +
                           std::to_string(models.size()));
}

/// Renames the layers of torchvision's published vision transformers, which have the names of an earlier
/// release, where the module has the current names.
void rename_mlp_layers(pickle::Value& state, const torch::nn::Module& module) {
  auto* const dict = std::get_if<pickle::Dict>(&state.data);
  if (dict == nullptr) return;
  const auto parameters = module.named_parameters();
  for (auto& [key, value] : dict->items) {
    for (const auto& [earlier, current] :
         {std::pair<std::string_view, const char*>("mlp.linear_1.", "mlp.0."),
          std::pair<std::string_view, const char*>("mlp.linear_2.", "mlp.3.")}) {
      const std::size_t at = key.find(earlier);
      if (at == key.npos) continue;
      std::string renamed = key;
      renamed.replace(at, earlier.size(), current);
      if (parameters.contains(renamed) && dict->find(renamed) == nullptr) key = std::move(renamed);
    }
  }
}

/// Calls `use()` and adds the file to the message of its errors.
template <typename Use>
auto about_file(const std::string& file, Use&& use) {
  try {
    return use();
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(file + ": " + error.what());
  }
}
/// The same with the checkpoint's directory.
template <typename Use>
auto about(const std::string& directory, Use&& use) {
  return about_file("checkpoint " + directory, std::forward<Use>(use));
}

}  // namespace

Json checkpoint_metadata(const TrialState& state) {
  return {{"steps_completed", state.progress.steps_completed},
          {"framework", "libtorch-" + compat::torch_version()},
          {"format", "pickle"},
          {"determinant_version", DET_VERSION}};
}

std::map<std::string, std::string> checkpoint_texts(const TrialInfo& info, const TrialState& state,
                                                    const Json& metadata) {
  Json trial_state = to_json(state.progress);
  // The checkpoint that is being saved is the latest one of the state it contains.
  trial_state["last_checkpoint"] = state.progress.steps_completed;
  trial_state["trial_id"] = info.trial_id;
  trial_state["run"] = info.run;
  trial_state["window"] = state.window;
  const Json load_data = {{"trial_type", "Trial"},
                          {"experiment_config", info.experiment_config},
                          {"hparams", info.hparams},
                          {"is_trainer", true}};
  // Compact: in exact mode the window has a row per shard and batch.
  return {{"trial_state.json", dump_json(trial_state)},
          {"load_data.json", dump_json(load_data, 1)},
          {"metadata.json", dump_json(metadata, 1)}};
}

std::string checkpoint_directory(const TrialInfo& info, const std::string& name) {
  if (name == "latest") return find_latest_checkpoint(info.checkpoint_dir, info.bucket.get()).value_or("");
  // A slash distinguishes a path from a uuid in the checkpoint storage.
  if (name.find('/') != std::string::npos) return name;
  return value_or_throw(bring_checkpoint(info.checkpoint_dir, name, info.bucket.get()));
}

pickle::Value read_state(const std::string& directory) {
  const std::string file = state_file(directory);
  // Checkpoints of other programs have neither file and are not verified. trial_state.json without a manifest
  // means that one of ours is incomplete.
  if (path_exists(directory + "/manifest.json") || path_exists(directory + kTrialState)) {
    ok_or_throw(verify_checkpoint(directory));
  }
  pickle::Value state = pickle::load(file);
  add_parts(state, directory);
  return state;
}

TrialState load_checkpoint(const RunInfo& run, WrappedObjects& wrapped, const std::string& directory,
                           bool same_numbers) {
  const pickle::Value content = read_state(directory);
  TrialState state;
  // Without trial_state.json the checkpoint is foreign: its counters are not used.
  const bool is_foreign = !path_exists(directory + kTrialState);
  if (!is_foreign) {
    const Json saved = read_json(directory + kTrialState);
    auto progress = progress_from_json(saved);
    if (!progress) throw std::runtime_error("checkpoint " + directory + ": " + progress.error().message);
    state.progress = *progress;
    state.window = saved.value("window", Json());
    state.same_trial = saved.value("trial_id", std::int64_t{-1}) == run.info.trial_id;
  }
  // After all files have been read, and before any state changes.
  for (const auto& [name, callback] : wrapped.callbacks) callback->on_checkpoint_load_start(directory);
  about(directory, [&] {
    if (state.same_trial) {
      apply_state(wrapped, content);
      return apply_generators(run.device, run.info.seed, same_numbers ? 0 : run.distributed->rank(), content,
                              state.progress.steps_completed);
    }
    // The hyperparameters of this trial determine its learning rates, schedules and callbacks.
    apply_wrapped_models(wrapped, content);
    if (is_foreign) apply_optimizers(wrapped, content, /*with_options=*/false);
  });
  return state;
}

std::int64_t checkpoint_steps(const TrialInfo& info, const std::string& directory) {
  if (directory.empty() || !path_exists(directory + kTrialState)) return 0;
  const Json saved = read_json(directory + kTrialState);
  const auto progress = progress_from_json(saved);
  return progress && saved.value("trial_id", std::int64_t{-1}) == info.trial_id ? progress->steps_completed
                                                                                : 0;
}

void load_model(const std::string& checkpoint_directory, torch::nn::Module& model, int model_index) {
  const pickle::Value state = read_state(checkpoint_directory);
  about(checkpoint_directory, [&] {
    const auto models = saved_models(state);
    apply_model(model, model_at(models, model_index, checkpoint_directory),
                "model_" + std::to_string(model_index));
  });
}

void apply_models(WrappedObjects& wrapped, const std::string& directory) {
  const pickle::Value state = read_state(directory);
  about(directory, [&] { apply_wrapped_models(wrapped, state); });
}

void export_safetensors(const std::string& checkpoint_directory, const std::string& path, int model_index) {
  const pickle::Value state = read_state(checkpoint_directory);
  about(checkpoint_directory, [&] {
    const auto models = saved_models(state);
    const pickle::Value& model = model_at(models, model_index, checkpoint_directory);
    safetensors::save(pickle::expect<pickle::Dict>(model, "model_" + std::to_string(model_index)), path);
  });
}

void save_safetensors(const torch::nn::Module& module, const std::string& path) {
  const pickle::Value tensors = collect_model(module);
  safetensors::save(*tensors.as<pickle::Dict>(), path);
}

void load_safetensors(const std::string& path, torch::nn::Module& module) {
  const pickle::Value tensors = safetensors::load(path);
  about_file(path, [&] { apply_model(module, tensors, "model"); });
}

void load_state_dict(const std::string& path, torch::nn::Module& module) {
  pickle::Value tensors = pickle::load(path);
  about_file(path, [&] {
    rename_mlp_layers(tensors, module);
    apply_model(module, tensors, "model");
  });
}

}  // namespace det
