// Text form of decisions for the scheduler's tests, and the reference implementation that they are compared
// with.
#pragma once

#include <string>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// "start 7 on a1:0,1 a2:0", "preempt 3", one a line.
std::string show(const Plan& plan);
/// The pool in the syntax of a .case file.
std::string show(const Snapshot& snapshot);
/// "hold 7 reserved on a1 slots 4", one a line.
std::string show(const std::vector<Hold>& holds);

/// Applies the rules of scheduler.h to a whole snapshot by brute force, without an index: every step visits
/// every request, agent and allocation. Shares only the geometry (fitting.h) with the scheduler.
Plan reference_decide(const Snapshot& snapshot, std::vector<Hold>& holds);

}  // namespace det::scheduler
