// Handler of BracketService.
#include "master/api/experiments/bracket.h"

#include <unordered_map>

#include "common/searcher/searcher.h"
#include "det/v1/bracket.methods.h"
#include "master/db/store/pg_store_load.h"

namespace det::api {
namespace {

Result<nlohmann::json> read(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(Code::kDataLoss, "the stored events of this search cannot be read");
  return json;
}

/// Rebuilds the searcher from its last snapshot and the events since.
Result<searcher::Searcher> replay(const db::StoredSearch& stored) {
  auto search = searcher::Searcher::create(stored.config);
  if (!stored.log.snapshot.empty()) {
    TRY_ASSIGN(const auto snapshot, read(stored.log.snapshot));
    search = searcher::Searcher::restore(stored.config, snapshot);
  }
  if (!search) return search;
  for (const std::string& text : stored.log.events) {
    TRY_ASSIGN(const auto json, read(text));
    TRY_ASSIGN(const auto event, searcher::event_from_json(json));
    search->handle(event);
  }
  return search;
}

}  // namespace

BracketService::BracketService(const Context& context) : Service(context, v1::BracketService::full_name) {
  unary(v1::BracketService::GetExperimentBrackets, &BracketService::GetExperimentBrackets);
}

Status BracketService::GetExperimentBrackets(const Caller&, const v1::GetExperimentBracketsRequest& request,
                                             v1::GetExperimentBracketsResponse* response) {
  const ExperimentId id(request.experiment_id());
  TRY_ASSIGN(const auto stored, context_.pool.with<db::StoredSearch>([id](db::Connection& connection) {
    return db::load_search(connection, id);
  }));
  response->set_time_metric(stored.config->searcher.time_name());
  const std::string& name = stored.config->searcher.name;
  // Other searchers stop no trial early and have no brackets.
  if (name != "async_halving" && name != "adaptive_asha") return {};
  TRY_ASSIGN(const searcher::Searcher search, replay(stored));
  std::unordered_map<std::string, TrialId> trials;
  for (const auto& [trial, request_id] : stored.trials) trials.emplace(request_id.value, trial);
  for (const searcher::BracketState& bracket : search.brackets()) {
    v1::Bracket* out = response->add_brackets();
    out->set_max_trials(static_cast<int>(bracket.max_trials));
    for (const auto& rung : bracket.rungs) {
      v1::Rung* one = out->add_rungs();
      one->set_length(rung.length);
      one->set_trials(static_cast<int>(rung.results));
    }
    // Trial numbers are internal to the searcher. Request ids, derived from seed and number, lead to the ids
    // of trials that were created.
    for (const searcher::TrialNumber number : bracket.trials) {
      const auto found = trials.find(searcher::request_id(stored.config->experiment_seed, number).value);
      if (found != trials.end()) out->add_trial_ids(static_cast<int>(found->second.value));
    }
  }
  return {};
}

}  // namespace det::api
