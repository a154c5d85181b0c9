// One cached group of metrics of one trial, and how it is loaded from packed chunks and metric rows. Private
// to metric_cache.
#pragma once

#include "master/db/series/metric_chunk.h"

namespace det::db {

/// Current state in the database of one group of one trial.
struct GroupNow {
  TrialId trial;
  RunNumber run = 0;
  std::string group;
  /// Highest step that is not archived.
  std::int64_t newest = 0;
  std::int64_t validations = 0;  ///< Number of validations; 0 for other groups.
  /// Number of packed chunks.
  std::int64_t chunks = 0;
  /// SeriesWriter::late_rows(), read before the query.
  std::uint64_t late = 0;
};

/// Level of detail that is read from packed chunks.
enum class Detail {
  kWhole,     ///< Every point.
  kExtremes,  ///< Minimum and maximum of every kExtremesOf points.
  kOutline,   ///< Minimum and maximum of every kOutlineOf points.
  /// Only the chunks that one query touches: extremes in the middle of a long range, points at its ends.
  kStretch,
};

/// A query for the steps in [first, last]. Extremes suffice when at least fewest_chunks chunks lie inside the
/// range; the outline of a whole series, when it has at least fewest_of_outline() chunks.
struct Look {
  std::int64_t first = 0, last = INT64_MAX, fewest_chunks = 1;
  bool operator==(const Look&) const = default;
  std::int64_t fewest_of_outline() const { return fewest_chunks * std::int64_t{kOutlineOf / kExtremesOf}; }
};

/// A cached group. `run` and `late` identify the state of the trial it was read from.
struct MetricGroup {
  RunNumber run = 0;
  std::uint64_t late = 0;
  /// Highest step read, and number of rows it stands for.
  std::int64_t newest = INT64_MIN, rows = 0;
  /// Points in memory, over all columns.
  std::size_t points = 0;
  /// Time of last use, on the clock of the shard.
  std::uint64_t used = 0;
  MetricColumns columns;
  // Only for Detail::kStretch: the query it was read for, the range of steps without gaps, and whether parts
  // of it are extremes.
  Look look;
  std::int64_t begins = INT64_MIN, ends = INT64_MAX;
  bool mixed = false;

  /// True when the group can answer a query.
  bool covers(const Look& other) const {
    return mixed ? look == other : begins <= other.first && other.last <= ends;
  }
  /// True when new rows belong to the group, that is, when it extends to the newest step.
  bool grows() const { return ends == INT64_MAX; }
};

/// Reads the rows that are newer than `group`; into an empty group, reads everything that `detail` and
/// group.look require. Unreadable chunks are deleted and their rows are read instead. Blocks on the database.
Status extend(Pool& pool, const GroupNow& now, Detail detail, MetricGroup& group);

}  // namespace det::db
