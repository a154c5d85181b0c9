// In-memory ring of this process's newest log lines, for the admin API. Thread-safe after keep_history.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"

namespace det::log {

/// A line of the log.
struct Line {
  std::uint64_t id = 0;  ///< consecutive, from 1
  WallTime time;
  LogLevel level = LogLevel::kInfo;
  std::string text;  ///< message and fields as on a text line, cut at 4 KiB
};

/// Starts keeping the newest `lines` lines; earlier lines are not kept. Call at most once, before other
/// threads start.
void keep_history(std::size_t lines);
/// Returns the id of the newest line; 0 if there is none.
std::uint64_t newest_line();
/// Returns up to `most` lines with ids greater than `after`, oldest first. Lines that the ring has dropped
/// are missing.
std::vector<Line> history(std::uint64_t after, std::size_t most);

/// Appends a line. Called by log::write only.
void remember(WallTime time, LogLevel level, std::string_view message, Fields fields);

}  // namespace det::log
