// Owns how a daemon writes its own log: one line of text for people, or one JSON object for machines. Must
// never be handed a secret. Users' trial logs do not pass here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace det {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError };
/// "trace", "debug", "info", "warn" (or "warning"), "error", in any case.
Result<LogLevel> parse_log_level(std::string_view name);
std::string_view log_level_name(LogLevel level);

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
  std::string file;     ///< appended to; "" is stderr
  std::string program;  ///< "master": named in every line
};

/// Sets where all threads log from now on. Before the first call lines of level info and up go to stderr as
/// text.
Status init_log(const LogOptions& options);
/// May be called at any time from any thread.
void set_log_level(LogLevel level);
LogLevel log_level();

/// One fact beside the message: {"trial", 12}, {"agent", name}, {"seconds", 0.5}.
struct LogField {
  std::string_view key;
  std::string value;
  bool bare = false;  ///< a number or truth value: not quoted in JSON

  LogField(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), bare(true) {}
  LogField(std::string_view k, double v);
  template <typename T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) LogField(std::string_view k, T v)
      : key(k), value(std::to_string(v)), bare(true) {}
  /// A strong id (base/ids.h).
  template <typename T>
  requires requires(const T& id) { id.value; }
  LogField(std::string_view k, const T& id) : LogField(k, id.value) {}
};

namespace log {

using Fields = std::initializer_list<LogField>;

/// Thread-safe. Text: `2026-03-02T02:15:18.299569Z INFO  master: agent connected agent=a1 slots=8`; JSON:
/// {"time":…,"level":"info","program":"master","message":"agent connected","agent":"a1","slots":8}.
/// Control characters are escaped in both: a message never makes a second line.
void write(LogLevel level, std::string_view message, Fields fields);

inline void trace(std::string_view message, Fields fields = {}) { write(LogLevel::kTrace, message, fields); }
inline void debug(std::string_view message, Fields fields = {}) { write(LogLevel::kDebug, message, fields); }
inline void info(std::string_view message, Fields fields = {}) { write(LogLevel::kInfo, message, fields); }
inline void warn(std::string_view message, Fields fields = {}) { write(LogLevel::kWarning, message, fields); }
inline void error(std::string_view message, Fields fields = {}) { write(LogLevel::kError, message, fields); }

/// The line `write` would print, without the line end; pure.
std::string format(const LogOptions& options, std::string_view time, LogLevel level, std::string_view message,
                   Fields fields);
/// What stands behind time, level and program in a line of text: `agent connected agent=a1 slots=8`.
std::string format_text(std::string_view message, Fields fields);

}  // namespace log
}  // namespace det
