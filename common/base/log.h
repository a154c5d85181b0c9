// Log of a daemon: one text line or one JSON object for each event. Thread-safe. Must not receive secrets.
// The logs of users' tasks do not pass through this module.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/result.h"

namespace det {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };
/// Parses "trace", "debug", "info", "warn" (or "warning") or "error", ignoring case. Errors:
/// kInvalidArgument.
Result<LogLevel> parse_log_level(std::string_view name);
/// Lower-case name: "trace", "debug", "info", "warn", "error".
std::string_view log_level_name(LogLevel level);

/// Destination and format.
struct LogOptions {
  LogLevel level = LogLevel::kInfo;  ///< minimum level that is written
  bool json = false;                 ///< JSON objects instead of text lines
  std::string file;                  ///< opened for append; "" means stderr
  std::string program;               ///< name on every line: "master"
};

/// Sets the destination and format for all threads. Before the first call, lines of level info and above go
/// to stderr as text. Errors: kUnavailable (the file cannot be opened).
Status init_log(const LogOptions& options);
/// Changes the minimum level. May be called at any time from any thread.
void set_log_level(LogLevel level);
/// Returns the minimum level.
LogLevel log_level();

/// A key and value beside the message: {"trial", 12}, {"agent", name}, {"seconds", 0.5}.
struct LogField {
  std::string_view key;
  std::string value;
  bool bare = false;  ///< a number or boolean: not quoted in JSON

  LogField(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), bare(true) {}
  LogField(std::string_view k, double v);
  template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) LogField(std::string_view k, T v)
      : key(k), value(std::to_string(v)), bare(true) {}
  /// A strong id (common/base/ids.h).
  template <typename T>
  requires requires(const T& id) { id.value; }
  LogField(std::string_view k, const T& id) : LogField(k, id.value) {}
};

namespace log {

using Fields = std::initializer_list<LogField>;

/// Writes one line if `level` is enabled. Control characters are escaped, so a message never spans two lines.
/// Text: `2026-03-02T02:15:18.299569Z INFO  master: agent connected agent=a1 slots=8`
/// JSON: {"time":...,"level":"info","program":"master","message":"agent connected","agent":"a1","slots":8}
void write(LogLevel level, std::string_view message, Fields fields);

inline void trace(std::string_view message, Fields fields = {}) { write(LogLevel::kTrace, message, fields); }
inline void debug(std::string_view message, Fields fields = {}) { write(LogLevel::kDebug, message, fields); }
inline void info(std::string_view message, Fields fields = {}) { write(LogLevel::kInfo, message, fields); }
inline void warn(std::string_view message, Fields fields = {}) { write(LogLevel::kWarning, message, fields); }
inline void error(std::string_view message, Fields fields = {}) { write(LogLevel::kError, message, fields); }

/// Returns the line that `write` would print, without the newline. Pure.
std::string format(const LogOptions& options, std::string_view time, LogLevel level, std::string_view message,
                   Fields fields);
/// Returns message and fields of a text line, without time, level and program: `agent connected agent=a1
/// slots=8`.
std::string format_text(std::string_view message, Fields fields);

}  // namespace log
}  // namespace det
