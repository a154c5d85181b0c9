#include "common/searcher/full_training.h"

#include <algorithm>

namespace det::searcher {

void FullTraining::validated(const Validated& event, MethodContext& context) {
  // Length 0: reports of every length go to one level of the sampler's model.
  context.observe(event.trial, 0, context.score(event.metric));
}

void FullTraining::fill(MethodContext& context) {
  while (concurrency_ == 0 || context.book().count(TrialState::kRunning) < concurrency_) {
    if (!again_.empty()) {
      context.resume(again_.front());
      again_.pop_front();
    } else if (context.book().too_many_invalid || !create_next(context)) {
      return;
    }
  }
}

void FullTraining::extended(const Book& before, MethodContext& context) {
  if (context.book().max_time > before.max_time) {
    again_.clear();
    for (TrialNumber trial = 0; trial < context.book().states.size(); ++trial) {
      if (context.state(trial) == TrialState::kCompleted) again_.push_back(trial);
    }
  }
  fill(context);
}

double FullTraining::progress(const Book& book, double running) const {
  // Invalid trials count in both sums: their replacements come in addition.
  const auto all =
      static_cast<double>(std::max(total(book) + book.count(TrialState::kInvalidHp), book.created()));
  // Trials queued for a resume are closed but not done.
  const auto closed = static_cast<double>(book.created() - book.open()) - static_cast<double>(again_.size());
  return all == 0 ? 0 : (closed + running) / all;
}

Status FullTraining::restore(const nlohmann::json& snapshot, const Book& book) {
  const auto again = snapshot.is_object() ? snapshot.find("again") : snapshot.end();
  if (!snapshot.is_object() || again == snapshot.end() || !again->is_array())
    return fail(Code::kDataLoss, "stored search: \"again\" is missing or no list");
  again_.clear();
  for (const auto& trial : *again) {
    if (!trial.is_number_unsigned() || trial.get<std::uint64_t>() >= book.states.size() ||
        book.states[trial.get<TrialNumber>()] != TrialState::kCompleted)
      return fail(Code::kDataLoss,
                  "stored search: \"again\" names a trial that has not completed: " + trial.dump());
    again_.push_back(trial.get<TrialNumber>());
  }
  return {};
}

}  // namespace det::searcher
