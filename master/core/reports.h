// Reports of harnesses. Every report is fenced by (trial, run) before anything else is checked.
#pragma once

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

/// Inputs of harnesses; see input.h for their contracts. Has no state of its own.
class Reports {
 public:
  explicit Reports(Owners& owners) : owners_(owners) {}

  Result<ReplyValue> handle(Step& step, const HarnessAttached& input);
  Result<ReplyValue> handle(Step& step, const ReportValidation& input);
  Result<ReplyValue> handle(Step& step, const ReportCheckpoint& input);
  Result<ReplyValue> handle(Step& step, const ReportDamage& input);
  Result<ReplyValue> handle(Step& step, const ReportProgress& input);
  Result<ReplyValue> handle(Step& step, const ReportInvalidHp& input);
  Result<ReplyValue> handle(Step& step, const AcknowledgePreemption& input);
  Result<ReplyValue> handle(Step& step, const HarnessAlive& input);
  Result<ReplyValue> handle(Step& step, const AskToLeave& input);
  Result<ReplyValue> handle(Step& step, const MarkDaemon& input);

 private:
  /// Queues a validation for the searcher; handles a report that lacks the searcher's metric.
  void report_to_search(Step& step, Trial& trial, const ReportValidation& report);
  /// Replaces the best metric when `metric` beats it.
  void update_best(Trial& trial, double metric) const;

  Owners& owners_;
};

}  // namespace det::core
