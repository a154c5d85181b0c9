// Owns the names of the faults of older searchers that a test may put back, to prove that the simulator would
// notice. A search that people run has kNone: no setting leads here.
#pragma once

namespace det::searcher {

enum class Fault {
  kNone,
  kHearsStopped,        ///< reports of a trial after it was stopped count again (W2)
  kFloatLogarithm,      ///< rungs are counted by a quotient of logarithms: ln 243 / ln 3 < 5 (W6)
  kUnorderedDraws,      ///< the order in which hyperparameters are drawn differs from process to process (W7)
  kEndlessReplacement,  ///< a trial with invalid hyperparameters is always replaced (W9)
};

}  // namespace det::searcher
