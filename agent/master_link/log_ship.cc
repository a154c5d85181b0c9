#include "agent/master_link/log_ship.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "common/base/log.h"
#include "common/client/calls.h"
#include "det/v1/agent.methods.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatchLines = 1000;
constexpr std::int64_t kBatchBytes = 1 << 20;
constexpr Duration kLook = 100ms;  // between two checks of quiet files
constexpr Duration kFirstLogRetry = 200ms, kLastLogRetry = 5s;
constexpr std::int64_t kPunchStep = 16 << 20;
constexpr int kCallSeconds = 20;

constexpr std::array<std::string_view, 8> kLevels{"TRACE",   "DEBUG", "INFO",     "WARN",
                                                  "WARNING", "ERROR", "CRITICAL", "FATAL"};

/// Maps spellings of levels to the master's names.
std::string_view level_name(std::string_view word) {
  if (word == "WARN") return "WARNING";
  return word == "FATAL" ? "CRITICAL" : word;
}

}  // namespace

v1::LogLine to_line(const LogRecord& record) {
  v1::LogLine line;
  const std::int64_t micros = record.time.micros;
  line.mutable_time()->set_seconds(micros / 1'000'000);
  line.mutable_time()->set_nanos(static_cast<std::int32_t>(micros % 1'000'000) * 1000);
  line.set_stdtype(record.stream == LogStream::kStderr ? "stderr" : "stdout");
  line.set_source(record.stream == LogStream::kAgent ? "agent" : "task");
  line.set_rank(-1);
  // "[rank=N] " is written by det-launch in front of each line of a rank.
  std::string_view text = record.text;
  if (text.starts_with("[rank=")) {
    const std::size_t end = text.find(']');
    int rank = 0;
    const char* last = text.data() + std::min(end, text.size());
    const auto [stop, error] = std::from_chars(text.data() + 6, last, rank);
    if (end != std::string_view::npos && error == std::errc{} && stop == last && rank >= 0) {
      line.set_rank(rank);
      text.remove_prefix(end + 1);
      if (text.starts_with(' ')) text.remove_prefix(1);
    }
  }
  // The longest level name has 8 characters.
  const std::size_t colon = text.substr(0, 10).find(':');
  if (colon != std::string_view::npos &&
      std::find(kLevels.begin(), kLevels.end(), text.substr(0, colon)) != kLevels.end()) {
    line.set_level(std::string(level_name(text.substr(0, colon))));
    text.remove_prefix(colon + 1);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  line.set_text(std::string(text));
  return line;
}

LogShip::LogShip(std::shared_ptr<grpc::Channel> channel, std::string agent_id,
                 std::function<void(AllocationId)> shipped)
    : channel_(std::move(channel)),
      agent_id_(std::move(agent_id)),
      shipped_(std::move(shipped)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

LogShip::~LogShip() {
  thread_.request_stop();
  commands_.close();
  thread_.join();
}

void LogShip::follow(const AllocationId& id, const TaskDir& dir) { commands_.push(Follow{id, dir}); }
void LogShip::finish(const AllocationId& id) { commands_.push(Finish{id}); }
void LogShip::forget(const AllocationId& id) { commands_.push(Drop{id}); }

void LogShip::handle(const Follow& command) {
  tasks_.try_emplace(command.id, Task{command.dir, read_position(command.dir.shipped())});
}

void LogShip::handle(const Finish& command) {
  const auto it = tasks_.find(command.id);
  if (it != tasks_.end()) it->second.finishing = true;
}

void LogShip::run(const std::stop_token& stop) {
  Duration retry{0};  // 0: the last attempt succeeded
  Duration wait = kLook;
  while (!stop.stop_requested()) {
    const MonoTime retry_at = mono_now() + retry;
    // During a back-off, commands are still accepted but nothing is sent.
    do {
      const Duration left = retry.count() > 0 ? retry_at - mono_now() : wait;
      for (const auto& command : commands_.pop_batch(64, std::max(left, Duration(0)))) {
        std::visit([this](const auto& value) { handle(value); }, command);
      }
    } while (retry.count() > 0 && mono_now() < retry_at && !stop.stop_requested());
    wait = tasks_.empty() ? Duration(1h) : kLook;
    bool failed = false;
    // A failure means that the master is unreachable, so the other tasks wait too.
    for (auto it = tasks_.begin(); it != tasks_.end() && !failed && !stop.stop_requested();) {
      const auto current = it++;
      const Sent sent = ship(current->first, current->second, stop);
      failed = sent == Sent::kNot;
      if (sent == Sent::kSome) wait = Duration(0);
      if (sent == Sent::kAll && current->second.finishing) {
        shipped_(current->first);
        tasks_.erase(current);
      }
    }
    retry = !failed ? Duration(0) : std::clamp<Duration>(retry * 2, kFirstLogRetry, kLastLogRetry);
  }
}

LogShip::Sent LogShip::ship(const AllocationId& id, Task& task, const std::stop_token& stop) {
  if (task.refused) return Sent::kAll;
  // A damaged file cannot be followed beyond the damage.
  const auto batch = read_log(task.dir.log(), task.position, kBatchLines, kBatchBytes);
  if (!batch) {
    log::warn("task log could not be read", {{"allocation", id}, {"reason", batch.error().message}});
    task.refused = true;
    return Sent::kAll;
  }
  if (batch->records.empty()) return Sent::kAll;
  v1::ShipLogsRequest request;
  request.set_allocation_id(id.value);
  request.set_agent_id(agent_id_);
  request.set_first_line(task.position.next_line);
  for (const LogRecord& record : batch->records) *request.add_lines() = to_line(record);
  grpc::ClientContext context;
  context.set_deadline(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kCallSeconds, GPR_TIMESPAN)));
  const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::ShipLogsResponse response;
  const grpc::Status status = wire::call(channel_, v1::AgentService::ShipLogs, context, request, response);
  if (status.ok()) {
    advance(id, task, *batch, response.next_line());
    return Sent::kSome;
  }
  log::debug("log not shipped", {{"allocation", id}, {"reason", status.error_message()}});
  // A retry cannot succeed after these codes.
  const bool final = status.error_code() == grpc::NOT_FOUND || status.error_code() == grpc::INVALID_ARGUMENT;
  if (!final) return Sent::kNot;
  log::warn("the master rejected a task log", {{"allocation", id}, {"reason", status.error_message()}});
  task.refused = true;
  return Sent::kAll;
}

void LogShip::advance(const AllocationId& id, Task& task, const LogBatch& batch, std::int64_t next_line) {
  if (next_line < batch.after.next_line) {
    // The master has fewer lines than it acknowledged (restored from a backup?). Punched lines are lost.
    log::warn("the master has fewer log lines than were acknowledged",
              {{"allocation", id}, {"line", next_line}});
  }
  task.position = batch.after;
  if (auto written = write_position(task.dir.shipped(), task.position); !written)
    log::warn(written.error().message);
  // In steps of 16 MiB: punching a hole costs a file system transaction.
  if (task.position.offset - task.punched < kPunchStep) return;
  task.punched = task.position.offset;
  punch_log(task.dir.log(), task.punched);
}

}  // namespace det::agent
