// Owns the newest lines of this process's own log, in memory, for those who may read them while it runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"

namespace det::log {

struct Line {
  std::uint64_t id = 0;  ///< from 1, without gaps
  WallTime time;
  LogLevel level = LogLevel::kInfo;
  std::string text;  ///< message and fields as in a line of text, at most 4 KiB
};

/// From now on the newest `lines` lines are kept; none are before the first call, which is the only one.
/// Before threads.
void keep_history(std::size_t lines);
/// The id of the newest line; 0 before the first. Any thread, as history().
std::uint64_t newest_line();
/// Those after the line `after` that are still there, at most `most`, oldest first.
std::vector<Line> history(std::uint64_t after, std::size_t most);

/// For log::write alone.
void remember(WallTime time, LogLevel level, std::string_view message, Fields fields);

}  // namespace det::log
