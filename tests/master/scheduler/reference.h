// Owns how the scheduler's tests write down a decision, and the oracle that they hold it against.
#pragma once

#include <string>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// "start 7 on a1:0,1 a2:0", "preempt 3", a line each.
std::string show(const Plan& plan);
/// The pool, as a .case file has it.
std::string show(const Snapshot& snapshot);
/// "hold 7 reserved on a1 slots 4"
std::string show(const std::vector<Hold>& holds);

/// The rules of scheduler.h over a whole snapshot, by brute force and without an index: every step looks at
/// every request, agent and allocation anew. Shares only the geometry (fitting.h) with what it judges.
Plan reference_decide(const Snapshot& snapshot, std::vector<Hold>& holds);

}  // namespace det::scheduler
