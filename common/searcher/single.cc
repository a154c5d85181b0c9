// Single search: one trial, trained to its end. Hyperparameter ranges are sampled once.
#include "common/searcher/full_training.h"

namespace det::searcher {
namespace {

class SingleSearch final : public FullTraining {
 public:
  SingleSearch() : FullTraining(1) {}
  Status check_more_trials() const override {
    return fail(Code::kFailedPrecondition,
                "a single search has one trial; give it more max_time, or create a random search");
  }

 protected:
  bool create_next(MethodContext& context) override {
    if (context.book().created() > 0) return false;
    context.create();
    return true;
  }
  std::int64_t total(const Book& book) const override {
    // An invalid trial is not replaced: a single search creates one trial only.
    return book.count(TrialState::kInvalidHp) > 0 ? 0 : 1;
  }
};

}  // namespace

Result<std::unique_ptr<SearchMethod>> make_single(const expconf::ExperimentConfig&) {
  return std::make_unique<SingleSearch>();
}

}  // namespace det::searcher
