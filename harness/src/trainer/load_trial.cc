// Trials that are loaded for use, not training.
#include <torch/cuda.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/files.h"
#include "det/checkpoint.h"
#include "harness/src/base/or_throw.h"
#include "harness/src/checkpoint/checkpoint.h"
#include "harness/src/trainer/context_state.h"

namespace det {

std::unique_ptr<TrialContext> make_load_context(const Json& hparams, const Json& experiment_config) {
  auto state = std::make_unique<ContextState>();
  state->run.client = make_quiet_client(/*takes_signals=*/false);
  state->run.info.hparams = hparams;
  state->run.info.experiment_config = experiment_config;
  if (torch::cuda::is_available()) state->run.device = torch::Device(torch::kCUDA, 0);
  return std::make_unique<TrialContext>(std::move(state));
}

std::unique_ptr<TrialContext> make_load_context(const std::string& path) {
  // Bounds the memory for a damaged file.
  constexpr std::int64_t kLimit = 16 << 20;
  const std::string file = path + "/load_data.json";
  const auto data =
      parse_json(value_or_throw(read_file(file, kLimit)), {.bytes = static_cast<std::size_t>(kLimit)});
  if (!data) throw std::runtime_error(file + ": " + data.error().message);
  const auto object = [&](const char* name) {
    const Json* value = data->is_object() ? find_path(*data, name) : nullptr;
    if (value == nullptr || !value->is_object()) throw std::runtime_error(file + ": " + name + " is missing");
    return *value;
  };
  return make_load_context(object("hparams"), object("experiment_config"));
}

void load_models(TrialContext& context, const std::string& path) {
  apply_models(context.state().wrapped, path);
}

}  // namespace det
