// Owns the decision who runs where. A pure function: a snapshot of one resource pool in, a plan out; no state is kept
// between calls, the same snapshot gives the same plan on every machine.
//
// Rules of the priority policy (determined-0.38 §4.2): requests in the order (priority, submission, id), smaller
// priority first; each is placed on one agent with enough free slots, the fullest that fits (ties by agent id),
// lowest slot ids first. Zero-slot requests need a connected agent only. What cannot be placed yet does not stop
// smaller requests behind it at the same priority from starting; lower priorities start too, and give way (are
// pre-empted, newest and least important first) when that lets a more important request start now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace det::scheduler {

/// Total order of claims: smaller first.
struct Claim {
  int priority = 42;             ///< 1..99, smaller is more important
  std::int64_t submitted = 0;    ///< microseconds; of the experiment
  std::int64_t trial = 0;
  auto operator<=>(const Claim&) const = default;
};

struct AgentView {
  AgentId id;
  std::vector<bool> slot_free;  ///< by slot id
  bool schedulable = true;      ///< connected and not draining
};
struct Request {
  TrialId trial;
  Claim claim;
  int slots = 1;
};
struct Running {
  AllocationId allocation;
  Claim claim;
  AgentId agent;
  std::vector<int> slots;
  bool preemptible = true;
  bool leaving = false;  ///< already told to end: its slots will come free
};
struct Snapshot {
  std::vector<AgentView> agents;
  std::vector<Request> requests;
  std::vector<Running> running;
};

struct Placement {
  TrialId trial;
  AgentId agent;
  std::vector<int> slots;
  bool operator==(const Placement&) const = default;
};
struct Plan {
  std::vector<Placement> start;
  std::vector<AllocationId> preempt;
};

Plan schedule(const Snapshot& snapshot);

}  // namespace det::scheduler
