#include "master/db/series/metric_column.h"

#include <algorithm>
#include <cmath>

namespace det::db {
namespace {

constexpr std::size_t kBlock = 64;

}  // namespace

void MetricColumn::keep(const SeriesPoint& point) {
  points_.push_back(point);
  // A block is indexed once it is full; a partial block at the end is scanned by between().
  if (points_.size() % kBlock == 0) {
    Extremes block;
    for (std::size_t i = points_.size() - kBlock; i < points_.size(); ++i) add(block, i);
    blocks_.push_back(block);
  }
}

void MetricColumn::append(const SeriesPoint& point) {
  summary_.last = point.value;
  // NaN and infinities count, but do not enter min, max and sum.
  if (std::isfinite(point.value)) {
    summary_.min = has_finite_ ? std::min(summary_.min, point.value) : point.value;
    summary_.max = has_finite_ ? std::max(summary_.max, point.value) : point.value;
    summary_.sum += point.value;
    has_finite_ = true;
  }
  ++summary_.count;
  keep(point);
}

void MetricColumn::append_extremes(const std::vector<SeriesPoint>& points, const MetricSummary& summary,
                                   bool has_finite) {
  if (pairs_begin_ == pairs_end_) pairs_begin_ = points_.size();
  for (const SeriesPoint& point : points) keep(point);
  pairs_end_ = points_.size();
  summary_.last = summary.last;
  summary_.count += summary.count;
  summary_.sum += summary.sum;
  if (!has_finite) return;
  summary_.min = has_finite_ ? std::min(summary_.min, summary.min) : summary.min;
  summary_.max = has_finite_ ? std::max(summary_.max, summary.max) : summary.max;
  has_finite_ = true;
}

std::vector<SeriesPoint> MetricColumn::extremes(std::size_t block) const {
  // Below this size the extremes would not be smaller than the points.
  constexpr std::size_t kFew = 512;
  std::vector<SeriesPoint> out;
  const auto alone = [&](const SeriesPoint& point) {
    out.push_back(point);
    out.push_back({point.steps_completed, std::nan(""), point.reported});
  };
  if (points_.size() <= kFew) {
    out = points_;
    if (out.size() % 2 == 1) out.pop_back(), alone(points_.back());
    return out;
  }
  for (std::size_t first = 0; first < points_.size(); first += block) {
    const Extremes found = between(first, std::min(first + block, points_.size()));
    if (found.low == Extremes::kNone) {
      alone(points_[first]);
    } else if (found.low == found.high) {
      alone(points_[found.low]);
    } else {
      out.push_back(points_[std::min(found.low, found.high)]);
      out.push_back(points_[std::max(found.low, found.high)]);
    }
  }
  return out;
}

void MetricColumn::add(Extremes& into, std::size_t position) const {
  if (position == Extremes::kNone) return;
  const double value = points_[position].value;
  if (std::isnan(value)) return;
  // Among equal values the first is the minimum and the last the maximum.
  if (into.low == Extremes::kNone || value < points_[into.low].value) into.low = position;
  if (into.high == Extremes::kNone || value >= points_[into.high].value) into.high = position;
}

MetricColumn::Extremes MetricColumn::between(std::size_t first, std::size_t end) const {
  Extremes found;
  while (first < end) {
    // Full blocks come from the index, the ragged ends are scanned.
    if (first % kBlock == 0 && first + kBlock <= end) {
      const Extremes& block = blocks_[first / kBlock];
      add(found, block.low);
      add(found, block.high);
      first += kBlock;
    } else {
      add(found, first++);
    }
  }
  return found;
}

std::size_t MetricColumn::position(std::int64_t steps) const {
  return static_cast<std::size_t>(
      std::lower_bound(points_.begin(), points_.end(), steps,
                       [](const SeriesPoint& point, std::int64_t at) { return point.steps_completed < at; }) -
      points_.begin());
}

std::vector<SeriesPoint> MetricColumn::reduced(std::int64_t first, std::int64_t last,
                                               std::size_t most) const {
  const std::size_t begin = position(first);
  const std::size_t end = last == INT64_MAX ? points_.size() : position(last + 1);
  if (begin >= end) return {};
  if (end - begin <= most) {
    std::vector<SeriesPoint> all(points_.begin() + static_cast<std::ptrdiff_t>(begin),
                                 points_.begin() + static_cast<std::ptrdiff_t>(end));
    // A NaN that pads a lone extreme has the step of its point and is dropped.
    const auto same = [](const SeriesPoint& a, const SeriesPoint& b) {
      return a.steps_completed == b.steps_completed;
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
  }
  // Buckets have equal widths in steps, not equal numbers of points.
  const std::int64_t low = points_[begin].steps_completed;
  const double span = static_cast<double>(points_[end - 1].steps_completed - low) + 1;
  const std::size_t buckets = std::max<std::size_t>(1, most / 2);
  std::vector<SeriesPoint> out;
  std::size_t from = begin;
  for (std::size_t bucket = 1; bucket <= buckets && from < end; ++bucket) {
    const double edge = std::ceil(span * static_cast<double>(bucket) / static_cast<double>(buckets));
    std::size_t to = bucket == buckets ? end : position(low + static_cast<std::int64_t>(edge));
    // Move the edge to the end of a pair.
    if (to > pairs_begin_ && to < pairs_end_) to += (to - pairs_begin_) % 2;
    const Extremes found = between(from, to);
    from = to;
    if (found.low == Extremes::kNone) continue;
    out.push_back(points_[std::min(found.low, found.high)]);
    if (found.low != found.high) out.push_back(points_[std::max(found.low, found.high)]);
  }
  return out;
}

}  // namespace det::db
