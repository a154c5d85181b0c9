// Owns what the searches share that train every trial to its end: so many at a time, until there are no more.
// Private to master/searcher.
#pragma once

#include <deque>

#include "master/searcher/method.h"

namespace det::searcher {

class FullTraining : public SearchMethod {
 public:
  /// `concurrency` 0: no limit.
  explicit FullTraining(std::int64_t concurrency) : concurrency_(concurrency) {}

  void start(MethodContext& context) override { fill(context); }
  void validated(const Validated& event, MethodContext& context) override;
  void exited(const Exited&, TrialState, MethodContext& context) override { fill(context); }
  /// More time: what has completed goes on, as many at a time as ever.
  void extended(const Book& before, MethodContext& context) override;
  void retried(TrialNumber trial, MethodContext& context) override { context.resume(trial); }
  double progress(const Book& book, double running) const override;
  nlohmann::json snapshot() const override { return {{"again", again_}}; }
  Status restore(const nlohmann::json& snapshot, const Book& book) override;

 protected:
  /// Creates one more trial; false when there are no more.
  virtual bool create_next(MethodContext& context) = 0;
  /// How many trials there will be.
  virtual std::int64_t total(const Book& book) const = 0;

 private:
  void fill(MethodContext& context);

  std::int64_t concurrency_;
  std::deque<TrialNumber> again_;  ///< completed, to be resumed when there is room
};

}  // namespace det::searcher
