// Random search: max_trials points of the sampler, max_concurrent_trials at a time. An invalid trial is
// replaced. Bergstra, Bengio: "Random Search for Hyper-Parameter Optimization", JMLR 13, 2012.
#include "common/searcher/full_training.h"

namespace det::searcher {
namespace {

class RandomSearch final : public FullTraining {
 public:
  using FullTraining::FullTraining;

 protected:
  bool create_next(MethodContext& context) override {
    if (context.book().valid() >= context.book().max_trials) return false;
    context.create();
    return true;
  }
  std::int64_t total(const Book& book) const override { return book.max_trials; }
};

}  // namespace

Result<std::unique_ptr<SearchMethod>> make_random(const expconf::ExperimentConfig& config) {
  return std::make_unique<RandomSearch>(config.searcher.max_concurrent_trials);
}

}  // namespace det::searcher
