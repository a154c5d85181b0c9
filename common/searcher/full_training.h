#pragma once

#include <deque>

#include "common/searcher/method.h"

namespace det::searcher {

/// Base of the searches that train every trial to its end (single, random, grid). Keeps up to `concurrency`
/// trials running until the subclass has none left to create. Private to common/searcher.
class FullTraining : public SearchMethod {
 public:
  /// `concurrency` 0: unlimited.
  explicit FullTraining(std::int64_t concurrency) : concurrency_(concurrency) {}

  void start(MethodContext& context) override { fill(context); }
  void validated(const Validated& event, MethodContext& context) override;
  void exited(const Exited&, TrialState, MethodContext& context) override { fill(context); }
  /// More time: completed trials are resumed, within the concurrency limit. More trials: creation continues.
  void extended(const Book& before, MethodContext& context) override;
  void retried(TrialNumber trial, MethodContext& context) override { context.resume(trial); }
  double progress(const Book& book, double running) const override;
  nlohmann::json snapshot() const override { return {{"again", again_}}; }
  Status restore(const nlohmann::json& snapshot, const Book& book) override;

 protected:
  /// Creates one more trial. Returns false if none is left.
  virtual bool create_next(MethodContext& context) = 0;
  /// Number of valid trials that the search will have.
  virtual std::int64_t total(const Book& book) const = 0;

 private:
  /// Resumes queued trials, else creates new ones, up to the concurrency limit.
  void fill(MethodContext& context);

  std::int64_t concurrency_;
  /// Completed trials to resume when a slot is free.
  std::deque<TrialNumber> again_;
};

}  // namespace det::searcher
