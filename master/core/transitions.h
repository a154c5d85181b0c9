// Legal state changes. Every change of a state in the core goes through `change`, which aborts the process on
// an illegal one: the store still has the last consistent state, and the next start reads it.
//
//   from                 to
//   ACTIVE               PAUSED, any STOPPING_*, any terminal state
//   PAUSED               ACTIVE, any STOPPING_*, any terminal state
//   STOPPING_COMPLETED   STOPPING_CANCELED, STOPPING_KILLED, STOPPING_ERROR, COMPLETED, ERROR
//   STOPPING_CANCELED    STOPPING_KILLED, STOPPING_ERROR, CANCELED, ERROR
//   STOPPING_KILLED      STOPPING_ERROR, CANCELED
//   STOPPING_ERROR       ERROR
//   COMPLETED, CANCELED, ERROR (terminal)   none; see reopen
//
//   Allocations: ASSIGNED → PULLING → STARTING → RUNNING → TERMINATING → TERMINATED. States may be skipped;
//   there is no way back.
#pragma once

#include "master/core/model.h"

namespace det::core {

bool is_legal(State from, State to);
bool is_legal(AllocationState from, AllocationState to);

/// Sets `state` to `to`. Aborts the process when the change is illegal.
void change(State& state, State to);
void change(AllocationState& state, AllocationState to);

/// Reopens an ended experiment or trial (ContinueSearch): a terminal state becomes `to`, ACTIVE or PAUSED.
/// Aborts on any other change.
void reopen(State& state, State to);

/// Returns the terminal state that a stopping state leads to.
State end_of(State stopping);

}  // namespace det::core
