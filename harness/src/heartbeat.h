// Owns the sign of life of a trial's processes: the file by which the agent's supervisor tells one that hangs
// (agent/task/hang_watch.h).
#pragma once

namespace det {

/// Says that this process gets on. To be called where work is done, a batch or a file or a report, never by a
/// timer: a timer beats on while the work stands still. Any thread. Costs a look at the clock, and once a
/// second a system call; nothing where no agent watches.
void beat();

}  // namespace det
