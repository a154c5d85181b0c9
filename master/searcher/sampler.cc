// Owns the uniform sampler. It has no state: the generator's is the search's.
#include "master/searcher/sampler.h"

namespace det::searcher {
namespace {

class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(const expconf::HyperparameterMap& space) : leaves_(leaves(space)) {}

  Sample next(Random& random) override {
    Sample sample;
    sample.values.reserve(leaves_.size());
    for (const expconf::Hyperparameter* leaf : leaves_) sample.values.push_back(draw(*leaf, random));
    return sample;
  }
  void created(TrialNumber, const Sample&) override {}
  void observe(TrialNumber, std::int64_t, double) override {}
  nlohmann::json snapshot() const override { return nullptr; }
  Status restore(const nlohmann::json&) override { return {}; }

 private:
  std::vector<const expconf::Hyperparameter*> leaves_;
};

}  // namespace

std::unique_ptr<Sampler> make_random_sampler(const expconf::HyperparameterMap& space) {
  return std::make_unique<RandomSampler>(space);
}

}  // namespace det::searcher
