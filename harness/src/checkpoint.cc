// Owns a trial's checkpoints.
#include "checkpoint.h"

#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "base/files.h"
#include "base/random.h"
#include "checkpoint_dir.h"
#include "det/checkpoint.h"
#include "state.h"
#include "torch_compat.h"

namespace det {
namespace {

constexpr char kStateDict[] = "/state_dict.pth";

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::string new_uuid() {
  std::random_device entropy;
  Random random{std::uint64_t{entropy()} << 32 | entropy(), std::uint64_t{entropy()}};
  return random.uuid();
}

Json read_json(const std::string& path) {
  constexpr std::int64_t kLimit = 16 << 20;
  const std::string text = value_or_throw(read_file(path, kLimit));
  auto value = parse_json(text, {.bytes = static_cast<std::size_t>(kLimit)});
  if (!value) throw std::runtime_error(path + ": " + value.error().message);
  return std::move(*value);
}

}  // namespace

CheckpointRecord save_checkpoint(ContextState& context, const TrialState& state) {
  const TrialInfo& info = context.info;
  CheckpointRecord record;
  record.uuid = new_uuid();
  record.steps_completed = state.progress.steps_completed;
  record.metadata = {{"steps_completed", record.steps_completed},
                     {"framework", "libtorch-" + compat::torch_version()},
                     {"format", "pickle"},
                     {"determinant_version", DET_VERSION}};
  Json trial_state = to_json(state.progress);
  trial_state["last_checkpoint"] = record.steps_completed;
  trial_state["trial_id"] = info.trial_id;
  trial_state["run"] = info.run;
  trial_state["window"] = state.window;
  const Json load_data = {{"trial_type", "Trial"},
                          {"experiment_config", info.experiment_config},
                          {"hparams", info.hparams},
                          {"is_trainer", true}};

  auto writer = value_or_throw(CheckpointWriter::create(info.checkpoint_dir, record.uuid));
  pickle::save(collect_state(context), writer.directory() + kStateDict);
  value_or_throw(writer.write("trial_state.json", dump_json(trial_state, 1)));
  value_or_throw(writer.write("load_data.json", dump_json(load_data, 1)));
  value_or_throw(writer.write("metadata.json", dump_json(record.metadata, 1)));
  value_or_throw(writer.copy(info.model_dir, context.code, "code"));
  record.resources = value_or_throw(writer.commit());
  return record;
}

std::string checkpoint_directory(const TrialInfo& info, const std::string& name) {
  if (name == "latest") return find_latest_checkpoint(info.checkpoint_dir).value_or("");
  if (name.find('/') != std::string::npos) return name;
  return info.checkpoint_dir + "/" + name;
}

TrialState load_checkpoint(ContextState& context, const std::string& directory) {
  value_or_throw(verify_checkpoint(directory));
  const Json saved = read_json(directory + "/trial_state.json");
  TrialState state;
  state.progress = value_or_throw(progress_from_json(saved));
  state.window = saved.value("window", Json());
  state.same_trial = saved.value("trial_id", std::int64_t{-1}) == context.info.trial_id;
  try {
    apply_state(context, pickle::load(directory + kStateDict), state.same_trial);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("checkpoint " + directory + ": " + error.what());
  }
  return state;
}

void load_model(const std::string& checkpoint_directory, torch::nn::Module& model, int model_index) {
  value_or_throw(verify_checkpoint(checkpoint_directory));
  const pickle::Value state = pickle::load(checkpoint_directory + kStateDict);
  const auto* dict = state.as<pickle::Dict>();
  const pickle::Value* models = dict == nullptr ? nullptr : dict->find("models_state_dict");
  const auto* list = models == nullptr ? nullptr : models->as<pickle::List>();
  if (list == nullptr || model_index < 0 || static_cast<std::size_t>(model_index) >= list->size()) {
    throw std::runtime_error(checkpoint_directory + ": holds no model " + std::to_string(model_index));
  }
  apply_model(model, (*list)[model_index], "model_" + std::to_string(model_index));
}

}  // namespace det
