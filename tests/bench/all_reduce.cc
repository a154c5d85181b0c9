// All-reduce between two ranks of one machine: shared memory and Gloo, alternating. segments.py starts it
// twice with a launcher's variables. Rank 0 prints the figures.
#include <torch/torch.h>

#include "figure.h"
#include "harness/src/distributed/communicator.h"

namespace {

constexpr int kRounds = 9;

double seconds(det::Communicator& communicator, torch::Tensor& tensor, int repeats) {
  return bench::seconds_of([&] {
           for (int i = 0; i < repeats; ++i) communicator.all_reduce(tensor)->wait();
         }) /
         repeats;
}

}  // namespace

int main() {
  torch::set_num_threads(1);
  det::DistributedContext distributed(det::rank_info_from_environment());
  const auto shm = det::make_communicator(distributed, torch::kCPU, "shm");
  const auto gloo = det::make_communicator(distributed, torch::kCPU, "gloo");
  const struct {
    const char* name;
    std::int64_t bytes;
    int repeats;
    double bound;
  } sizes[] = {{"4KB", 4 << 10, 300, 0.5}, {"4MB", 4 << 20, 20, 0.5}, {"64MB", 64 << 20, 2, 0.5}};
  for (const auto& size : sizes) {
    torch::Tensor tensor = torch::zeros({size.bytes / 4});
    std::vector<double> ratios, times;
    for (int round = 0; round <= kRounds; ++round) {
      distributed.barrier();
      const double ours = seconds(*shm, tensor, size.repeats), theirs = seconds(*gloo, tensor, size.repeats);
      if (round > 0) ratios.push_back(ours / theirs), times.push_back(ours);
    }
    if (!distributed.is_chief()) continue;
    std::fprintf(stderr, "all-reduce of %s: %.1f us over shared memory, gloo %.1f\n", size.name,
                 bench::median(times) * 1e6, bench::median(times) * 1e6 / bench::median(ratios));
    bench::figure(std::string("all_reduce_shm_over_gloo_") + size.name, bench::median(ratios), "ratio",
                  "<=", size.bound);
  }
}
