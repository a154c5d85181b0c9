#include "harness/src/trainer/sanity_check.h"

#include <ATen/core/grad_mode.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/storage/bucket.h"
#include "harness/src/base/storage_full.h"
#include "harness/src/checkpoint/checkpoint_dir.h"

namespace det {
namespace {

/// Inherits the defaults of all functions that a trial may override.
class TrialOfDefaults final : public Trial {
 public:
  DataLoader build_training_data_loader() override { throw std::logic_error("not called"); }
  DataLoader build_validation_data_loader() override { throw std::logic_error("not called"); }
  Metrics train_batch(Batch&, int64_t, int64_t) override { throw std::logic_error("not called"); }
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpmf-conversions"
/// The function that a call of evaluate_full_dataset() on this object reaches (an extension of GCC).
const void* evaluation_of(const Trial& trial) {
  using Function = std::optional<Metrics> (*)(Trial*, const DataLoader&);
  return reinterpret_cast<const void*>(
      reinterpret_cast<Function>(const_cast<Trial&>(trial).*(&Trial::evaluate_full_dataset)));
}
#pragma GCC diagnostic pop
#endif

}  // namespace

bool evaluates_full_dataset(const Trial& trial) {
#if defined(__GNUC__) && !defined(__clang__)
  return evaluation_of(trial) != evaluation_of(TrialOfDefaults());
#else
  return true;
#endif
}

ModelGuard::ModelGuard(const ContextState& state) : generators_(state.run.device) {
  const at::NoGradGuard no_grad;
  for (const auto& model : state.wrapped.models) {
    for (const torch::Tensor& tensor : model->parameters())
      if (tensor.defined()) tensors_.emplace_back(tensor, tensor.detach().clone());
    for (const torch::Tensor& tensor : model->buffers())
      if (tensor.defined()) tensors_.emplace_back(tensor, tensor.detach().clone());
  }
}

ModelGuard::~ModelGuard() {
  const at::NoGradGuard no_grad;
  for (auto& [tensor, copy] : tensors_) tensor.copy_(copy);
}

void probe_checkpoint(const ContextState& state) {
  if (!state.run.distributed->is_chief()) return;
  const GeneratorGuard unchanged(state.run.device);
  for (const auto& [name, callback] : state.wrapped.callbacks) (void)dump_json(callback->state_dict());
  const TrialInfo& info = state.run.info;
  constexpr char kWhat[] = "a checkpoint cannot be saved";
  if (info.bucket) return saved_or_throw(info.bucket->check(), kWhat);
  auto writer =
      CheckpointWriter::create(info.checkpoint_dir, uuid4(), {info.cluster_id, info.trial_id, info.run});
  saved_or_throw(writer ? writer->write("probe", "det") : Status(tl::unexpected(writer.error())), kWhat);
}

}  // namespace det
