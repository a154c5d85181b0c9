// Owns one group of one trial's metrics in memory, and reading it out of the database: of packed rows the
// chunks that a look needs, of the others the rows. Not for other rooms.
#pragma once

#include "master/db/metric_chunk.h"

namespace det::db {

/// What the database says about one group of one trial now.
struct GroupNow {
  TrialId trial;
  RunNumber run = 0;
  std::string group;
  std::int64_t newest = 0;
  std::int64_t validations = 0;  ///< rows; 0 for other groups
  std::int64_t chunks = 0;
  std::uint64_t late = 0;
};

/// What is read of what is packed.
enum class Detail {
  kWhole,     ///< every point
  kExtremes,  ///< of each kExtremesOf points the smallest and the largest
  kStretch,   ///< the chunks that one look touches: a long middle by its extremes, the rest point by point
};

/// A look at the steps in [first, last]; extremes are enough for so many chunks and more.
struct Look {
  std::int64_t first = 0, last = INT64_MAX, fewest_chunks = 1;
  bool operator==(const Look&) const = default;
};

struct MetricGroup {
  RunNumber run = 0;
  std::uint64_t late = 0;
  std::int64_t newest = INT64_MIN, rows = 0;
  std::size_t points = 0;
  std::uint64_t used = 0;
  Columns columns;
  // Of a stretch: what it was read for, the steps of which nothing is missing, and whether some are extremes
  // only.
  Look look;
  std::int64_t begins = INT64_MIN, ends = INT64_MAX;
  bool mixed = false;

  bool covers(const Look& other) const {
    return mixed ? look == other : begins <= other.first && other.last <= ends;
  }
  /// Rows that come are part of it.
  bool grows() const { return ends == INT64_MAX; }
};

/// Reads what has come since it was read, or all that `detail` and the group's look ask for into an empty
/// one. What is packed and cannot be read is dropped, and read from the rows.
Status extend(Pool& pool, const GroupNow& now, Detail detail, MetricGroup& group);

}  // namespace det::db
