// Heartbeat of a trial's process: a file by which the agent's supervisor detects a hang
// (agent/task/hang_watch.h).
#pragma once

namespace det {

/// Signals progress. Call it where work is done (a batch, a file, a report), never from a timer, which would
/// continue while the work hangs. Thread-safe. Costs one read of the clock, and one system call per second;
/// nothing without an agent.
void beat();

}  // namespace det
