// Owns the bookkeeping that every search method shares: which trials exist, how they closed, when the search
// is over.
#include "master/searcher/searcher.h"

#include <algorithm>
#include <cmath>

#include "master/searcher/hyperparameters.h"
#include "master/searcher/single.h"

namespace det::searcher {

nlohmann::json MethodContext::sample() { return searcher::sample(config.hyperparameters, random); }

Create MethodContext::create() {
  Create create;
  create.request_id = RequestId(random.uuid());
  create.trial_seed = static_cast<std::uint32_t>(random.below(1u << 31));
  create.hparams = sample();
  return create;
}

Result<std::unique_ptr<SearchMethod>> make_search_method(const expconf::SearcherConfig& config) {
  if (config.name == "single") return std::make_unique<SingleSearch>();
  return fail(Code::kUnimplemented,
              "searcher.name: there is no searcher \"" + config.name + "\"; use single");
}

Result<Searcher> Searcher::create(std::shared_ptr<const expconf::ExperimentConfig> config) {
  Searcher searcher;
  TRY_ASSIGN(searcher.method_, make_search_method(config->searcher));
  searcher.random_.seed = config->experiment_seed;
  searcher.config_ = std::move(config);
  return searcher;
}

std::vector<Action> Searcher::handle(const Event& event) {
  if (shut_down_) return {};
  MethodContext context{random_, *config_};
  std::vector<Action> actions;
  if (std::holds_alternative<Started>(event)) {
    if (!trials_.empty()) return {};
    actions = method_->initial(context);
  } else if (auto* validated = std::get_if<Validated>(&event)) {
    auto trial = trials_.find(validated->request_id);
    if (trial == trials_.end() || trial->second) return {};
    actions = method_->validated(*validated, context);
  } else {
    const auto& exited = std::get<Exited>(event);
    auto trial = trials_.find(exited.request_id);
    if (trial == trials_.end() || trial->second) return {};
    trial->second = exited.reason;
    --open_;
    actions = method_->exited(exited, context);
  }
  for (const Action& action : actions) {
    auto* create = std::get_if<Create>(&action);
    if (create && trials_.emplace(create->request_id, std::nullopt).second) ++open_;
  }
  if (open_ == 0) {
    auto all = [this](ExitReason reason) {
      return !trials_.empty() && std::all_of(trials_.begin(), trials_.end(),
                                             [reason](auto& trial) { return trial.second == reason; });
    };
    shut_down_ = true;
    // In place: GCC 12 sees an uninitialized string in the moved-from variant.
    actions.emplace_back(std::in_place_type<Shutdown>, all(ExitReason::kCanceled), all(ExitReason::kErrored));
  }
  return actions;
}

double Searcher::progress(const std::map<RequestId, double>& trial_progress) const {
  std::map<RequestId, double> known;
  for (const auto& [id, closed] : trials_) {
    auto reported = trial_progress.find(id);
    known[id] = closed ? 1 : reported == trial_progress.end() ? 0 : reported->second;
  }
  const double progress = method_->progress(known);
  return std::isnan(progress) ? 0 : std::clamp(progress, 0.0, 1.0);
}

}  // namespace det::searcher
