// Owns SingleSearch. It has no state of its own: that its trial exists is the Searcher's bookkeeping.
#include "master/searcher/single.h"

namespace det::searcher {

std::vector<Action> SingleSearch::initial(MethodContext& context) { return {context.create()}; }

std::vector<Action> SingleSearch::validated(const Validated&, MethodContext&) { return {}; }

std::vector<Action> SingleSearch::exited(const Exited&, MethodContext&) { return {}; }

double SingleSearch::progress(const std::map<RequestId, double>& trial_progress) const {
  return trial_progress.empty() ? 0 : trial_progress.begin()->second;
}

nlohmann::json SingleSearch::snapshot() const { return nlohmann::json::object(); }

Status SingleSearch::restore(const nlohmann::json& snapshot) {
  if (!snapshot.is_object())
    return fail(Code::kDataLoss, "the stored state of a single search is not an object");
  return {};
}

}  // namespace det::searcher
