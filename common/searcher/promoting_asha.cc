// ASHA by promotion (Li et al., MLSys 2020, Algorithm 2): a trial is held at each rung. A free slot goes to
// the best promotable trial of the highest rung that has one, else to a new trial.
#include "common/searcher/halving.h"

namespace det::searcher {
namespace {

class PromotingAsha final : public Halving {
 public:
  PromotingAsha(const expconf::ExperimentConfig& config, const std::vector<Bracket>& plan)
      : Halving(config, plan, 0) {}

  void validated(const Validated& event, MethodContext& context) override {
    Place& place = places_[event.trial];
    // A held trial may still deliver a report that was in flight; its result at this rung stands.
    if (context.state(event.trial) == TrialState::kHeld) return;
    Run& run = run_of(event.trial);
    place.reached = 0;
    for (const Level& level : run.levels) {
      if (event.time >= static_cast<double>(level.length)) ++place.reached;
    }
    if (place.reached <= place.entries) return;
    // A report enters one rung only, even if it is long enough for several. promote() uses the rest of
    // `reached`.
    const std::int64_t length = run.levels[place.entries].length;
    const double score = context.score(event.metric);
    enter(event.trial, score);
    context.observe(event.trial, length, score);
    if (place.entries == run.levels.size()) {
      end(event.trial, context);
    } else {
      context.hold(event.trial);
      ++run.held;
      --run.live;
      wait(event.trial);
    }
    fill(place.bracket, context);
  }
};

}  // namespace

std::unique_ptr<SearchMethod> make_promoting_asha(const expconf::ExperimentConfig& config,
                                                  const std::vector<Bracket>& plan) {
  return std::make_unique<PromotingAsha>(config, plan);
}

}  // namespace det::searcher
