// Packed chunks of long series, stored beside the metric rows. A chunk covers kChunkRows rows of one group of
// one trial and stores all points, and the minimum and maximum of every kExtremesOf and of every kOutlineOf
// points. For each metric of a chunk these are 384, 12 and 3 KiB. A chart reads the least of them that
// suffices, and parses no JSON.
//
// Invariant: the rows are the source of truth. A chunk is written after its rows have been committed and is
// deleted in the transaction that archives or changes one of them or inserts another between them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "master/db/pg/pg.h"
#include "master/db/series/metric_column.h"

namespace det::db {

/// Rows per chunk.
constexpr std::int64_t kChunkRows = 16'384;
/// Points per block of the extremes and of the outline; each block keeps its minimum and maximum.
constexpr std::size_t kExtremesOf = 64, kOutlineOf = 256;

/// The writer of metric rows, as readers of series need it. Thread-safe; no call blocks.
class SeriesWriter {
 public:
  /// Schedules packing of the rows of a group into chunks. Best effort: dropped when the queue is full. Also
  /// happens after every kChunkRows stored rows.
  virtual void pack(TrialId trial, const std::string& group) = 0;
  /// Returns a counter that increases when rows of this trial were stored at or below existing steps of their
  /// group. Trials share counters, so it can also increase because of another trial. Readers use it to
  /// invalidate cached series.
  virtual std::uint64_t late_rows(TrialId trial) const = 0;

 protected:
  ~SeriesWriter() = default;
};

/// Series of one group by metric name.
using MetricColumns = std::map<std::string, MetricColumn>;

/// Calls `found` with every number of a report: numbers of the outermost object, and the strings "NaN",
/// "Infinity" and "-Infinity". Ignores malformed JSON from the first error on.
void each_number(const std::string& json,
                 const std::function<void(const std::string& name, double value)>& found);

/// Serializes columns in the byte order of this machine. pack_extremes() stores only the summary, and the
/// extremes of every `block` points.
std::string pack_points(const MetricColumns& columns);
std::string pack_extremes(const MetricColumns& columns, std::size_t block);
/// Appends packed data to `columns`. kDataLoss: malformed data; `columns` may then hold a part of it.
Status unpack_points(std::string_view bytes, MetricColumns& columns);
Status unpack_extremes(std::string_view bytes, MetricColumns& columns);

/// Packs all complete chunks that are not packed yet. Idempotent and safe beside writers: a chunk with rows
/// that changed after they were read is discarded.
Status pack_group(Connection& connection, TrialId trial, const std::string& group);

/// Deletes the chunks that end at or beyond `first_steps`. Call it in the transaction that inserts or
/// archives rows there.
Status drop_chunks(Connection& connection, TrialId trial, std::int64_t first_steps);

/// Deletes all chunks of a group. Call it in its own transaction; it serializes with pack_group(), so no
/// partial packing remains.
Status forget_chunks(Connection& connection, TrialId trial, const std::string& group);

}  // namespace det::db
