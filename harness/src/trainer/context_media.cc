// TrialContext: reports of media. Converts tensors; encoding is in observability/media.h.
#include <ATen/Functions.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "det/context.h"
#include "harness/src/base/torch_compat.h"
#include "harness/src/observability/media.h"
#include "harness/src/optim/graph_mode.h"
#include "harness/src/trainer/context_state.h"

namespace det {
namespace {

constexpr std::int64_t kMaxGridImages = 64;

/// Returns options with the step of the entry.
MediaOptions at_step(const ContextState& state, MediaOptions options) {
  if (options.steps_completed < 0) options.steps_completed = std::max(state.report_step, state.initial_batch);
  return options;
}

/// Converts [N, C, H, W] to images, at most kMaxGridImages. uint8 stays; other types are scaled.
std::vector<Image> to_images(const torch::Tensor& batch, bool stretch) {
  torch::Tensor some = batch.detach().slice(0, 0, kMaxGridImages).to(torch::kCPU);
  if (stretch && some.numel() > 0) {
    some = some.to(torch::kFloat);
    const torch::Tensor low = some.min(), high = some.max();
    some = (some - low) / (high - low).clamp_min(1e-12);
  }
  if (some.scalar_type() != torch::kByte)
    some = some.to(torch::kFloat).nan_to_num(0).clamp(0, 1).mul(255).round().to(torch::kByte);
  some = some.permute({0, 2, 3, 1}).contiguous();
  std::vector<Image> out;
  for (std::int64_t i = 0; i < some.size(0); ++i) {
    const torch::Tensor one = some[i];
    const auto* pixels = one.data_ptr<std::uint8_t>();
    out.push_back({.width = one.size(1),
                   .height = one.size(0),
                   .channels = static_cast<int>(one.size(2)),
                   .pixels = {pixels, pixels + one.numel()}});
  }
  return out;
}

}  // namespace

void TrialContext::report_media(const MediaRecord& record) {
  refuse_in_recording("a report of media");
  if (state_->sanity_check || !state_->run.distributed->is_chief()) return;
  state_->run.client->report_media(record);
}

void TrialContext::report_image(const std::string& name, const torch::Tensor& image,
                                const MediaOptions& options) {
  torch::Tensor batch = image;
  if (batch.defined() && batch.dim() == 2) batch = batch.unsqueeze(0);
  if (batch.defined() && batch.dim() == 3) batch = batch.unsqueeze(0);
  if (!batch.defined() || batch.dim() != 4 || batch.numel() == 0 ||
      (batch.size(1) != 1 && batch.size(1) != 3))
    throw std::invalid_argument("report_image(\"" + name +
                                "\"): expected [H, W], [C, H, W] or [N, C, H, W] with 1 or 3 channels, got " +
                                (image.defined() ? compat::shape_text(image) : "an undefined tensor"));
  report_media(image_record(name, image_grid(to_images(batch, options.stretch)), at_step(*state_, options)));
}

void TrialContext::report_histogram(const std::string& name, const torch::Tensor& values, int bins,
                                    const MediaOptions& options) {
  if (!values.defined())
    throw std::invalid_argument("report_histogram(\"" + name + "\"): the tensor is undefined");
  const torch::Tensor flat = values.detach().to(torch::kCPU, torch::kDouble).flatten().contiguous();
  const auto* data = flat.data_ptr<double>();
  report_media(histogram_record(name, {data, data + flat.numel()}, bins, at_step(*state_, options)));
}

void TrialContext::report_text(const std::string& name, const std::string& text,
                               const MediaOptions& options) {
  report_media(text_record(name, text, at_step(*state_, options)));
}

void TrialContext::report_table(const std::string& name, const std::vector<std::string>& columns,
                                const Json& rows, const MediaOptions& options) {
  report_media(table_record(name, columns, rows, at_step(*state_, options)));
}

void TrialContext::report_file(const std::string& name, const std::string& path,
                               const MediaOptions& options) {
  report_media(file_record(name, path, at_step(*state_, options)));
}

}  // namespace det
