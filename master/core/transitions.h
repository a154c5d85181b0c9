// Owns which changes of state are legal. Every change in the core goes through `change`, which ends the
// process on an illegal one: the store still holds the last good state, and the next start reads it.
//
//   ACTIVE ⇄ PAUSED → STOPPING_COMPLETED → STOPPING_CANCELED → STOPPING_KILLED → STOPPING_ERROR   (only to
//   the right)
//        each → the end it names: COMPLETED, CANCELED, CANCELED, ERROR; ACTIVE and PAUSED → any end
//   ASSIGNED → PULLING → STARTING → RUNNING → TERMINATING → TERMINATED                          (may skip,
//   never back)
#pragma once

#include "master/core/model.h"

namespace det::core {

bool is_legal(State from, State to);
bool is_legal(AllocationState from, AllocationState to);

void change(State& state, State to);
void change(AllocationState& state, AllocationState to);

/// An end that a user takes back: COMPLETED, CANCELED or ERROR → `to`, ACTIVE or PAUSED.
void take_back(State& state, State to);

/// The end that a stopping state announces.
State end_of(State stopping);

}  // namespace det::core
