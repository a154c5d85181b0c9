// The uniform sampler. It has no state; the random generator belongs to the search.
#include "common/searcher/sampler.h"

#include <atomic>

namespace det::searcher {
namespace {

class RandomSampler final : public Sampler {
 public:
  RandomSampler(const expconf::HyperparameterMap& space, Fault fault) : leaves_(leaves(space)) {
    // Injected fault only: a process-wide counter makes the order differ from search to search.
    static std::atomic<unsigned> made{0};
    if (fault == Fault::kUnorderedDraws && !leaves_.empty()) first_ = made++ % leaves_.size();
  }

  Sample next(Random& random) override {
    Sample sample;
    sample.values.resize(leaves_.size());
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const std::size_t leaf = (first_ + i) % leaves_.size();
      sample.values[leaf] = draw(*leaves_[leaf], random);
    }
    return sample;
  }
  void created(TrialNumber, const Sample&) override {}
  void observe(TrialNumber, std::int64_t, double) override {}
  nlohmann::json snapshot() const override { return nullptr; }
  Status restore(const nlohmann::json&) override { return {}; }

 private:
  std::vector<const expconf::Hyperparameter*> leaves_;
  std::size_t first_ = 0;  ///< leaf drawn first; 0 unless a fault is injected
};

}  // namespace

std::unique_ptr<Sampler> make_random_sampler(const expconf::HyperparameterMap& space, Fault fault) {
  return std::make_unique<RandomSampler>(space, fault);
}

}  // namespace det::searcher
