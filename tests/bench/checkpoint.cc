// Saving a checkpoint of 256 MB. Measures the stall of training against a blocking torch::save and an
// in-memory copy, and the rate to durability against fio's direct writes. All alternate in the same folder.
// Usage: bench_checkpoint [DIRECTORY]
#include <torch/torch.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/process.h"
#include "figure.h"
#include "harness/src/checkpoint/checkpoint_saver.h"
#include "harness/src/client/trial_info.h"
#include "harness/src/trainer/context_state.h"

namespace {

constexpr int kRounds = 5;
constexpr std::int64_t kBytes = 256 << 20;

/// Bytes a second of fio for the same size: sequential direct writes with a final sync.
double fio_rate(const std::string& directory) {
  const auto result =
      det::run_process({.argv = {"fio", "--name=write", "--directory=" + directory, "--size=256M",
                                 "--rw=write", "--bs=4M", "--direct=1", "--iodepth=4", "--ioengine=libaio",
                                 "--end_fsync=1", "--unlink=1", "--output-format=json"}})
          .value();
  if (!result.ok()) throw std::runtime_error("fio failed (is it installed?): " + result.err);
  return nlohmann::json::parse(result.out)["jobs"][0]["write"]["bw_bytes"].get<double>();
}

}  // namespace

int main(int argc, char** argv) {
  const auto own = det::TemporaryDirectory::create().value();
  const std::string directory = argc > 1 ? argv[1] : own.path();
  torch::set_num_threads(2);
  auto state = std::make_unique<det::ContextState>();
  state->run.info.checkpoint_dir = directory;
  state->run.client = det::make_local_client();
  det::ContextState& inside = *state;
  det::TrialContext context(std::move(state));
  auto model =
      context.wrap_model(torch::nn::Sequential(torch::nn::Linear(8192, 4096), torch::nn::Linear(4096, 8192)));
  std::vector<double> stalls, copies, rates;
  det::CheckpointSaver saver(inside.run, inside.wrapped);
  for (int round = 0; round <= kRounds; ++round) {
    double stall = 0;
    const double durable = bench::seconds_of([&] {
      stall = bench::seconds_of([&] { saver.save({}); });
      saver.wait();
    });
    (void)saver.finished();
    std::vector<torch::Tensor> into;
    for (const auto& parameter : model->parameters()) into.push_back(torch::empty_like(parameter));
    for (auto& tensor : into) std::memset(tensor.data_ptr(), 0, tensor.nbytes());
    const double copy = bench::seconds_of([&] {
      for (std::size_t i = 0; i < into.size(); ++i) {
        std::memcpy(into[i].data_ptr(), model->parameters()[i].data_ptr(), into[i].nbytes());
      }
    });
    const double blocking = bench::seconds_of([&] { torch::save(model, directory + "/model.pt"); });
    const double fio = fio_rate(directory);
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      std::filesystem::remove_all(entry.path());
    if (round == 0) continue;  // Warm-up: allocates buffers and fills directory caches.
    stalls.push_back(stall / blocking);
    copies.push_back(stall / copy);
    rates.push_back(kBytes / durable / fio);
    std::fprintf(stderr,
                 "stall %.1f ms, copy %.1f ms, torch::save %.1f ms; durable %.2f GB/s, fio %.2f GB/s\n",
                 stall * 1e3, copy * 1e3, blocking * 1e3, kBytes / durable / 1e9, fio / 1e9);
  }
  bench::figure("checkpoint_stall_over_torch_save", bench::median(stalls), "ratio", "<=", 0.15);
  bench::figure("checkpoint_stall_over_memcpy", bench::median(copies), "ratio", "<=", 1.3);
  bench::figure("checkpoint_durable_over_fio", bench::median(rates), "ratio", ">=", 0.9);
}
