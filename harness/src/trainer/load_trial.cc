// Context of a trial that is loaded for use, not training.
#include <torch/cuda.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/files.h"
#include "det/checkpoint.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

/// A client without reports, preemption or signal handlers.
class SilentClient final : public Client {
 public:
  void report_metrics(const std::string&, std::int64_t, const Json&) override {}
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const CheckpointRecord&) override {}
  void report_invalid_hp() override {}
  bool should_preempt() const override { return false; }
  void acknowledge_preemption() override {}
  bool flush(std::chrono::seconds) override { return true; }
};

}  // namespace

std::unique_ptr<TrialContext> make_load_context(const Json& hparams, const Json& experiment_config) {
  auto state = std::make_unique<ContextState>();
  state->client = std::make_unique<SilentClient>();
  state->info.hparams = hparams;
  state->info.experiment_config = experiment_config;
  const Json* data = find_path(experiment_config, "data");
  if (data != nullptr && data->is_object()) state->data_config = *data;
  if (torch::cuda::is_available()) state->device = torch::Device(torch::kCUDA, 0);
  state->doing = "the trial's constructor";
  return std::make_unique<TrialContext>(std::move(state));
}

std::unique_ptr<TrialContext> make_load_context(const std::string& path) {
  // Bounds the memory for a damaged file.
  constexpr std::int64_t kLimit = 16 << 20;
  const std::string file = path + "/load_data.json";
  const auto text = read_file(file, kLimit);
  if (!text) throw std::runtime_error(text.error().message);
  const auto data = parse_json(*text, {.bytes = static_cast<std::size_t>(kLimit)});
  if (!data) throw std::runtime_error(file + ": " + data.error().message);
  const auto object = [&](const char* name) {
    const Json* value = data->is_object() ? find_path(*data, name) : nullptr;
    if (value == nullptr || !value->is_object()) throw std::runtime_error(file + ": " + name + " is missing");
    return *value;
  };
  return make_load_context(object("hparams"), object("experiment_config"));
}

}  // namespace det
