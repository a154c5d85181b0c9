// Owns how long series lie packed in the database, beside the rows they are made of. A chunk holds kChunkRows
// rows of one group of one trial: its points as they are, and of each kExtremesOf points the smallest and the
// largest. A chart of everything reads the extremes (24 KiB a chunk and metric), a closer look the points
// (390 KiB), neither any JSON. Rows stay the truth: a chunk is made after its rows are committed, and goes in
// the transaction in which one of them is archived or another comes between them.
#pragma once

#include <map>

#include "master/db/metric_column.h"
#include "master/db/pg.h"

namespace det::db {

constexpr std::int64_t kChunkRows = 16'384;
constexpr std::size_t kExtremesOf = 64;

using Columns = std::map<std::string, MetricColumn>;

/// Calls back with every number of a report: the numbers of the outermost object, and the strings that stand
/// for some.
void each_number(const std::string& json,
                 const std::function<void(const std::string& name, double value)>& found);

/// For reading on the machine of the same byte order.
std::string pack_points(const Columns& columns);
std::string pack_extremes(const Columns& columns);
/// Adds what was packed behind what is there. kDataLoss when it was not packed by these.
Status unpack_points(std::string_view bytes, Columns& columns);
Status unpack_extremes(std::string_view bytes, Columns& columns);

/// Packs whole chunks of what is not packed yet. Safe to repeat and beside writers: a chunk whose rows have
/// changed since they were read is not stored.
Status pack_group(Connection& connection, TrialId trial, const std::string& group);

/// As its transaction has put rows at or beyond `first_steps` between others.
Status drop_chunks(Connection& connection, TrialId trial, std::int64_t first_steps);

/// In a transaction of its own: none of the group's chunks is there when it commits, nor half of a later
/// packing.
Status forget_chunks(Connection& connection, TrialId trial, const std::string& group);

}  // namespace det::db
