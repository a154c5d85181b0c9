#include "common/metrics/throughput.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/base/units.h"

namespace det {
namespace {

/// Few, because the speed changes with validations and checkpoints.
constexpr std::size_t kMaxSamples = 8;

double bounded(double fraction) { return std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0; }

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void Throughput::add(std::int64_t batches, double progress, MonoTime now) {
  if (!samples_.empty() && batches < samples_.back().batches) samples_.clear();
  if (!samples_.empty() && batches == samples_.back().batches) return;
  samples_.push_back({now, batches, bounded(progress)});
  if (samples_.size() > kMaxSamples) samples_.pop_front();
}

std::string Throughput::text(MonoTime now) const {
  if (samples_.size() < 2) return "";
  const Sample &first = samples_.front(), &last = samples_.back();
  const double span = seconds_of(last.time - first.time);
  if (span <= 0) return "";
  char text[48];
  std::snprintf(text, sizeof text, ", %.1f batches/s",
                static_cast<double>(last.batches - first.batches) / span);
  const double speed = (last.progress - first.progress) / span;
  if (speed <= 0 || last.progress >= 1) return text;
  const double left = (1 - last.progress) / speed - seconds_of(now - last.time);
  return text + std::string(", ") + whole_seconds(std::chrono::seconds(std::llround(std::max(left, 0.0)))) +
         " left";
}

std::string whole_seconds(Duration time) {
  return human_duration(std::chrono::duration_cast<std::chrono::seconds>(std::max(time, Duration(0))));
}

std::string percentage(double fraction) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", bounded(fraction) * 100);
  return text;
}

}  // namespace det
