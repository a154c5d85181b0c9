// Owns the geometry of a placement: which devices of an agent, and how a gang is cut over agents. Functions
// of their arguments.
#pragma once

#include <utility>
#include <vector>

#include "master/scheduler/scheduler.h"

namespace det::scheduler {

/// `count` of the free slots, ascending (W14). From one link group where one has enough (the one with the
/// fewest free, ties: the lowest), else from as few groups as can be. Inside a group the shortest run of
/// adjacent slots that is long enough (ties: the lowest), else the longest runs. `free` marks slots by id; at
/// least `count` are.
std::vector<int> choose_slots(const std::vector<Slot>& slots, const std::vector<bool>& free, int count);

/// Cuts `count` slots over agents, of which `agents` tells how many have how many free: {free, agents}, free
/// descending, both >= 1. Returns the free counts of the chosen agents, descending; all their free slots are
/// taken but on the last. Empty when there are not enough. The fewest agents; of these choices the least left
/// over on the last, and of equals the largest agents first. Backtracks over kinds of agents, at most
/// kSearchSteps steps; after that the best so far.
std::vector<int> choose_agents(const std::vector<std::pair<int, int>>& agents, int count);
inline constexpr int kSearchSteps = 512;

}  // namespace det::scheduler
