// ASHA by stopping: at each rung a trial continues if it is among the best 1/divisor of the results so far,
// else it is stopped. Decisions depend on the order of arrival.
#include "common/searcher/halving.h"

namespace det::searcher {
namespace {

class StoppingAsha final : public Halving {
 public:
  StoppingAsha(const expconf::ExperimentConfig& config, const std::vector<Bracket>& plan)
      : Halving(config, plan, 1) {}

  void validated(const Validated& event, MethodContext& context) override {
    Place& place = places_[event.trial];
    const double score = context.score(event.metric);
    auto& levels = run_of(event.trial).levels;
    while (place.entries < levels.size()) {
      Level& level = levels[place.entries];
      if (!(event.time >= static_cast<double>(level.length))) return;
      enter(event.trial, score);
      context.observe(event.trial, level.length, score);
      // The first result at a rung always passes. A later result with the worst score never ties with the
      // best.
      const bool passes = score < kWorst ? level.results.ties_best(score) : level.results.size() == 1;
      if (place.entries < levels.size() && passes) continue;
      end(event.trial, context);
      fill(place.bracket, context);
      return;
    }
  }
};

}  // namespace

std::unique_ptr<SearchMethod> make_stopping_asha(const expconf::ExperimentConfig& config,
                                                 const std::vector<Bracket>& plan) {
  return std::make_unique<StoppingAsha>(config, plan);
}

}  // namespace det::searcher
