#include "cli/output/logs.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iostream>
#include <map>

#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/clock.h"
#include "common/base/event.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

/// Time that a master may be unreachable while a log is followed.
constexpr Duration kLogPatience = std::chrono::minutes(10);
/// Pauses between attempts to open the stream; each one is twice as long as the one before.
constexpr Duration kFirstLogPause = std::chrono::milliseconds(100), kMaxLogPause = std::chrono::seconds(5);

/// Names of --level.
const std::map<std::string, v1::LogLevel>& levels() {
  static const std::map<std::string, v1::LogLevel> names{
      {"TRACE", v1::LOG_LEVEL_TRACE}, {"DEBUG", v1::LOG_LEVEL_DEBUG},
      {"INFO", v1::LOG_LEVEL_INFO},   {"WARNING", v1::LOG_LEVEL_WARNING},
      {"ERROR", v1::LOG_LEVEL_ERROR}, {"CRITICAL", v1::LOG_LEVEL_CRITICAL}};
  return names;
}

/// Parses an RFC 3339 time into `target`. Errors: kInvalidArgument, with the flag's name.
Status set_log_time(const std::string& text, const char* flag, google::protobuf::Timestamp* target) {
  const auto time = parse_rfc3339(text);
  if (!time) return fail(Code::kInvalidArgument, std::string(flag) + ": " + time.error().message);
  target->set_seconds(time->micros / 1'000'000);
  target->set_nanos(static_cast<std::int32_t>(time->micros % 1'000'000 * 1000));
  return {};
}

// Overloads for the two requests, which belong to different services.
template <typename Take>
Status stream(Client& client, const v1::TrialLogsRequest& request, const Take& take) {
  return client.stream(v1::LogService::TrialLogs, request, take);
}
template <typename Take>
Status stream(Client& client, const v1::TaskLogsRequest& request, const Take& take) {
  return client.stream(v1::TaskService::TaskLogs, request, take);
}

/// Copies the filters of the flags into the request.
template <typename Request>
Status choose_lines(const LogFlags& flags, Request& request) {
  for (const std::string& id : flags.agent_ids) request.add_agent_ids(id);
  for (const std::string& id : flags.container_ids) request.add_container_ids(id);
  for (const int id : flags.rank_ids) request.add_rank_ids(id);
  for (const std::string& source : flags.sources) request.add_sources(source);
  for (const std::string& type : flags.stdtypes) request.add_stdtypes(type);
  if (!flags.level.empty()) {
    // The API selects single levels: add every level from the given one upwards.
    for (const auto& [name, level] : levels()) {
      if (level >= levels().at(flags.level)) request.add_levels(level);
    }
  }
  if (!flags.before.empty())
    TRY(set_log_time(flags.before, "--timestamp-before", request.mutable_timestamp_before()));
  if (!flags.after.empty())
    TRY(set_log_time(flags.after, "--timestamp-after", request.mutable_timestamp_after()));
  return {};
}

/// Returns the last `count` entries in ascending order. The master returns them newest first.
template <typename Request>
Result<std::vector<v1::LogEntry>> read_tail(Client& client, Request request, int count) {
  request.set_order_by(v1::ORDER_BY_DESC);
  request.set_limit(count);
  std::vector<v1::LogEntry> entries;
  TRY(stream(client, request, [&](const v1::LogEntry& entry) {
    entries.push_back(entry);
    return true;
  }));
  return std::vector<v1::LogEntry>(entries.rbegin(), entries.rend());
}

/// The entry's position in the log.
std::int64_t id_of(const v1::LogEntry& entry) {
  std::int64_t id = 0;
  std::from_chars(entry.id().data(), entry.id().data() + entry.id().size(), id);
  return id;
}

/// Streams the log until it ends or `take` returns false. Resumes after the last entry when the connection
/// breaks. Fails when no stream has worked for kLogPatience.
template <typename Request, typename Take>
Status follow_logs(Client& client, Request request, const Take& take) {
  request.set_follow(true);
  MonoTime end = mono_now() + kLogPatience;
  for (Duration pause = kFirstLogPause;; pause = std::min<Duration>(pause * 2, kMaxLogPause)) {
    const MonoTime opened = mono_now();
    bool works = false;
    Status ended = stream(client, request, [&](const v1::LogEntry& entry) {
      request.set_after_id(id_of(entry));
      works = true;
      return take(entry);
    });
    if (ended || ended.error().code != Code::kUnavailable) return ended;
    // Also a stream without entries, while the log does not grow.
    works = works || mono_now() - opened > kMaxLogPause;
    if (works) {
      end = mono_now() + kLogPatience;
      pause = kFirstLogPause;
    }
    if (mono_now() > end || !client.reconnect()) return ended;
    // A master that starts or stops is reachable and still returns UNAVAILABLE.
    Event().wait_for(pause);
  }
}

/// Prints the selected lines, a JSON object or a text each.
template <typename Request>
Status print_lines(Client& client, Request request, const LogFlags& flags) {
  TRY(choose_lines(flags, request));
  if (flags.follow) client.set_patience(kLogPatience);
  int printed = 0;
  const auto print_one = [&](const v1::LogEntry& entry) {
    if (flags.json) {
      const auto value = to_json(entry);
      if (value) std::cout << dump_json(*value) << '\n';
    } else {
      std::cout << shown_log_line(entry);
    }
    if (flags.follow) std::cout.flush();
    return ++printed != flags.head;
  };
  if (flags.tail > 0) {
    TRY_ASSIGN(const auto entries, read_tail(client, request, flags.tail));
    for (const v1::LogEntry& entry : entries) print_one(entry);
    if (!flags.follow) return {};
    // Continues where the tail ends, without a gap or a repeated line.
    if (!entries.empty()) request.set_after_id(id_of(entries.back()));
  }
  if (flags.follow) return follow_logs(client, request, print_one);
  request.set_limit(flags.head);
  return stream(client, request, print_one);
}

}  // namespace

void LogFlags::declare(CLI::App& app) {
  app.add_flag("-f,--follow", follow, "Follow the log until the end.");
  CLI::Option* first = app.add_option("--head", head, "Only the first N lines.")->check(kPositive);
  app.add_option("--tail", tail, "Only the last N lines.")->check(kPositive)->excludes(first);
  app.add_flag("--json", json, "Print one JSON object per line.");
  // One value per flag, so that a positional argument may follow.
  const auto repeated = [](CLI::Option* option) { option->allow_extra_args(false)->take_all(); };
  repeated(app.add_option("--agent-id", agent_ids, "Only lines of this agent; repeatable."));
  repeated(app.add_option("--container-id", container_ids, "Only lines of this allocation; repeatable."));
  repeated(app.add_option("--rank-id", rank_ids, "Only lines of this rank; repeatable."));
  repeated(app.add_option("--source", sources, "Only lines of this source; repeatable."));
  repeated(app.add_option("--stdtype", stdtypes, "Only lines of this stream: stdout or stderr; repeatable."));
  std::vector<std::string> names;
  for (const auto& known : levels()) names.push_back(known.first);
  app.add_option("--level", level, "Only lines of this level or above.")
      ->check(CLI::IsMember(names, CLI::ignore_case))
      ->transform([](const std::string& value) { return to_upper(value); });
  app.add_option("--timestamp-before", before, "Only lines before this time (RFC 3339).");
  app.add_option("--timestamp-after", after, "Only lines after this time (RFC 3339).");
}

std::string log_line(const v1::LogEntry& entry) {
  std::string text = entry.message();
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

std::string short_log_line(const v1::LogEntry& entry, WallTime now, bool color) {
  constexpr std::string_view kBar = " || ", kRank = "[rank=";
  std::string whole = log_line(entry);
  const std::size_t bar = whole.find(kBar);
  // A line without a prefix is printed as it is.
  if (bar == std::string::npos || !entry.has_timestamp()) return whole;
  const std::string before = whole.substr(0, bar), text = whole.substr(bar + kBar.size());
  const std::time_t seconds = entry.timestamp().seconds(), today = now.micros / 1'000'000;
  std::tm parts{}, current{};
  ::localtime_r(&seconds, &parts);
  ::localtime_r(&today, &current);
  const bool same_day = parts.tm_yday == current.tm_yday && parts.tm_year == current.tm_year;
  char time[32];
  std::strftime(time, sizeof time, same_day ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &parts);
  const std::size_t rank = before.find(kRank);
  const std::string mark =
      rank == std::string::npos ? "" : before.substr(rank, before.find(']', rank) + 1 - rank) + " ";
  if (!color) return std::string(time) + " " + mark + text;
  // The level that begins the text.
  const char* begin = text.starts_with("ERROR") || text.starts_with("CRITICAL") ? "\033[31m"
                      : text.starts_with("WARNING")                             ? "\033[33m"
                                                                                : "";
  const std::size_t level = *begin == '\0' ? 0 : text.find(':');
  std::string line = std::string("\033[2m") + time + "\033[0m " + mark;
  if (level == 0 || level == std::string::npos) return line + text;
  return line + begin + text.substr(0, level) + "\033[0m" + text.substr(level);
}

std::string shown_log_line(const v1::LogEntry& entry) {
  return is_terminal(STDOUT_FILENO) ? short_log_line(entry, wall_now(), wants_color(STDOUT_FILENO))
                                    : log_line(entry);
}

Status follow_log(Client& client, v1::TrialLogsRequest request,
                  const std::function<void(const v1::LogEntry&)>& take) {
  return follow_logs(client, std::move(request),
                     [&](const v1::LogEntry& entry) { return take(entry), true; });
}
Status follow_task_log(Client& client, v1::TaskLogsRequest request,
                       const std::function<void(const v1::LogEntry&)>& take) {
  return follow_logs(client, std::move(request),
                     [&](const v1::LogEntry& entry) { return take(entry), true; });
}

Status print_logs(Client& client, int trial, const LogFlags& flags) {
  v1::TrialLogsRequest request;
  request.set_trial_id(trial);
  return print_lines(client, std::move(request), flags);
}
Status print_task_logs(Client& client, const std::string& task, const LogFlags& flags) {
  v1::TaskLogsRequest request;
  request.set_task_id(task);
  return print_lines(client, std::move(request), flags);
}

}  // namespace det::cli
