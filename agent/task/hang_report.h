// Diagnosis of a hung task from the collective calls that its ranks recorded
// (common/base/layouts/collective_memory.h), and their stacks. The memory belongs to the task: every value is
// checked. Linux, /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "common/base/layouts/collective_memory.h"

namespace det::agent {

/// The record of one rank on this machine.
struct RankRecord {
  pid_t pid = 0;  ///< as the caller sees it
  int rank = 0, ranks = 1;
  int stack_signal = 0;                   ///< 0: the process has no handler
  std::vector<collective::Record> calls;  ///< in the order of their start
  UniqueFd memory;
};

/// The finding of diagnose().
struct HangDiagnosis {
  std::string text;                ///< one line
  std::vector<std::size_t> stuck;  ///< indices of ranks; their stacks explain the hang
};

/// Reads the records of `processes`. Those without one are skipped; of several processes with the same
/// memory, the first counts. Sorted by rank.
std::vector<RankRecord> read_ranks(const std::vector<pid_t>& processes);

/// Compares the calls of the ranks of one machine and names those that the others wait for. Pure.
HangDiagnosis diagnose(const std::vector<RankRecord>& ranks, MonoTime now);

/// Requests the stacks of the main threads of `ranks` and waits for all, at most `patience`. Returns one text
/// for each; "" when a process did not answer. Blocks.
std::vector<std::string> take_stacks(const std::vector<const RankRecord*>& ranks, Duration patience);

}  // namespace det::agent
