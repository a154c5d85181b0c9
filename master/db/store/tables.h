// Columns of the tables that the core writes: one entry a column, in tables.cc. A new member of a struct of
// the core takes its entry there and a migration. Private to master/db.
#pragma once

#include <set>
#include <vector>

#include "master/core/effect.h"
#include "master/db/pg/columns.h"

namespace det::db {

/// The first write of an experiment also sets the columns that derive from its configuration.
const Table<core::PutExperiment>& experiments_table();
const Table<core::Trial>& trials_table();
const Table<core::Command>& commands_table();
/// Deadlines are not stored.
const Table<core::Allocation>& allocations_table();
const Table<core::AgentSettings>& agent_settings_table();
const Table<core::Pilot>& pilots_table();
const Table<core::AppendSearcherEvent>& searcher_events_table();
const Table<core::PutSearcherSnapshot>& searcher_snapshots_table();

// States are stored by name. An unknown name reads as an ended state, which is never resumed: kError or
// kTerminated; an optional state is then empty, as it is for NULL.
void put(Params& out, core::State state);
Status take(Rows::Row& row, core::State& state);
void put(Params& out, core::AllocationState state);
Status take(Rows::Row& row, core::AllocationState& state);
Status take(Rows::Row& row, std::optional<core::AllocationState>& state);
/// An unknown name reads as kCanceling: the pilot is released.
void put(Params& out, core::PilotPhase phase);
Status take(Rows::Row& row, core::PilotPhase& phase);

// Other members that SQL stores in another form.
void put(Params& out, const std::vector<core::AllocationPart>& parts);
Status take(Rows::Row& row, std::vector<core::AllocationPart>& parts);
void put(Params& out, const std::vector<AgentId>& agents);
Status take(Rows::Row& row, std::vector<AgentId>& agents);
void put(Params& out, const std::set<int>& numbers);
Status take(Rows::Row& row, std::set<int>& numbers);

/// Reads the columns scope, subject_id, resource and amount of a row of `quotas`. kDataLoss for unknown
/// names.
Status read_quota(Rows::Row& row, core::Quota& out);

}  // namespace det::db
