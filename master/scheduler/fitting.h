// Geometry of a placement: the devices within an agent, and the partition of a gang over agents. Pure
// functions.
#pragma once

#include <utility>
#include <vector>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// Chooses `count` of the free slots of an agent; returns their ids, ascending. Takes one link group when one
/// has enough free slots (best fit, ties: the lowest), otherwise as few groups as possible. Within a group it
/// takes the shortest run of adjacent slots that is long enough (ties: the lowest), otherwise the longest
/// runs. `free` marks free slots by id; at least `count` of them are.
std::vector<int> choose_slots(const std::vector<Slot>& slots, const std::vector<bool>& free, int count);

/// Partitions a gang of `count` slots over agents. `agents` is a histogram: pairs {free slots, number of
/// agents}, both >= 1, in descending order of free slots. Returns the free slots of each chosen agent,
/// descending; all of them are taken, except on the last agent. Returns an empty vector when the slots do not
/// suffice. Chooses the fewest agents, among these choices the fewest slots left over on the last agent,
/// among equal ones the largest agents first. Searches by backtracking over the kinds of agents; after
/// kSearchSteps steps it returns the best partition found so far.
std::vector<int> choose_agents(const std::vector<std::pair<int, int>>& agents, int count);
/// Bound on the backtracking steps of choose_agents.
inline constexpr int kSearchSteps = 512;

}  // namespace det::scheduler
