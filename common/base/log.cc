#include "common/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log_history.h"
#include "common/base/text.h"

namespace det {
namespace {

/// Destination of the log. Published atomically; never modified after publication.
struct Target {
  LogOptions options;
  std::shared_ptr<spdlog::logger> logger;
  const Target* previous = nullptr;  ///< the replaced target; keeps it reachable for leak checkers
};

std::shared_ptr<spdlog::logger> make_logger(const std::string& file) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (file.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file);
  }
  auto logger = std::make_shared<spdlog::logger>("det", sink);
  // The lines arrive formatted. Each one is flushed, so that a crash loses none.
  logger->set_pattern("%v");
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  return logger;
}

/// Minimum level, readable without a lock on the hot path.
std::atomic<int>& threshold() {
  static std::atomic<int> level{static_cast<int>(LogLevel::kInfo)};
  return level;
}

/// The current target. Replaced targets are never freed: another thread may still be writing to one.
std::atomic<const Target*>& target() {
  static std::atomic<const Target*> current{new Target{{}, make_logger(""), nullptr}};
  return current;
}

/// Escapes newlines and control characters, which would otherwise forge log lines or control a terminal.
void append_escaped(std::string& line, std::string_view text) {
  for (const char c : make_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else if (c == '\t') {
      line += ' ';
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      line += escape;
    } else {
      line += c;
    }
  }
}

Json json_value(const LogField& field) {
  if (!field.bare) return make_utf8(field.value);
  Result<Json> number = parse_json(field.value);  // NaN is no JSON number and stays a string
  return number ? std::move(*number) : Json(field.value);
}

}  // namespace

LogField::LogField(std::string_view k, double v) : key(k), value(dump_json(v)), bare(true) {
  if (!std::isfinite(v)) value = json_double(v).get<std::string>();
}

Result<LogLevel> parse_log_level(std::string_view name) {
  const std::string lower = to_lower(name);
  if (lower == "warning") return LogLevel::kWarning;
  std::vector<std::string> names;
  for (const LogLevel level :
       {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (lower == log_level_name(level)) return level;
    names.emplace_back(log_level_name(level));
  }
  return fail(Code::kInvalidArgument,
              "\"" + std::string(name) + "\" is no log level; use one of " + join(names, ", "));
}

std::string_view log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return "trace";
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

Status init_log(const LogOptions& options) {
  try {
    target().store(new Target{options, make_logger(options.file), target().load()});
  } catch (const spdlog::spdlog_ex& error) {
    return fail(Code::kUnavailable, "log file " + options.file + ": " + error.what());
  }
  set_log_level(options.level);
  return {};
}

void set_log_level(LogLevel level) { threshold().store(static_cast<int>(level)); }
LogLevel log_level() { return static_cast<LogLevel>(threshold().load()); }

namespace log {

std::string format_text(std::string_view message, Fields fields) {
  std::string line;
  append_escaped(line, message);
  for (const LogField& field : fields) {
    line += ' ';
    append_escaped(line, field.key);
    line += '=';
    // Quotes values with spaces, quotes or '='. Inside, quotes and backslashes get a backslash.
    if (!field.value.empty() && field.value.find_first_of(" \"=\t\n") == std::string::npos) {
      append_escaped(line, field.value);
      continue;
    }
    std::string value;
    for (const char c : field.value)
      value += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    line += '"';
    append_escaped(line, value);
    line += '"';
  }
  return line;
}

std::string format(const LogOptions& options, std::string_view time, LogLevel level, std::string_view message,
                   Fields fields) {
  if (options.json) {
    // Fields keep their order: time, level, program, message, then the fields of the call.
    Json line = {{"time", time}, {"level", log_level_name(level)}};
    if (!options.program.empty()) line["program"] = options.program;
    line["message"] = make_utf8(message);
    for (const LogField& field : fields) line[make_utf8(field.key)] = json_value(field);
    return dump_json(line);
  }
  std::string name = to_upper(log_level_name(level));
  name.resize(5, ' ');
  std::string line = std::string(time) + ' ' + name + ' ';
  if (!options.program.empty()) line += options.program + ": ";
  return line + format_text(message, fields);
}

void write(LogLevel level, std::string_view message, Fields fields) {
  // A relaxed load is enough: a level change need not take effect at once.
  if (static_cast<int>(level) < threshold().load(std::memory_order_relaxed)) return;
  const Target& current = *target().load();
  const WallTime now = wall_now();
  const std::string line = format(current.options, to_rfc3339(now), level, message, fields);
  current.logger->log(spdlog::level::info, spdlog::string_view_t(line));
  remember(now, level, message, fields);
}

}  // namespace log
}  // namespace det
