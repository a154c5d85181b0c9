// Faults that a test can inject into a searcher, to prove that the simulator detects them. Each was a defect
// of an earlier search implementation. No configuration selects one; production uses kNone.
#pragma once

namespace det::searcher {

/// A fault to inject.
enum class Fault {
  kNone,
  kHearsStopped,        ///< reports of a stopped trial still count
  kFloatLogarithm,      ///< rungs are counted by floating-point logarithms: ln 243 / ln 3 < 5
  kUnorderedDraws,      ///< the order in which hyperparameters are drawn differs between processes
  kLeavesBehind,        ///< trials that run during an extension keep the old length
  kEndlessReplacement,  ///< a trial with invalid hyperparameters is always replaced
};

}  // namespace det::searcher
