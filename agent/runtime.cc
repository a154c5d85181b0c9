#include "agent/runtime.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "agent/classify_exit.h"
#include "agent/task/processes.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/options.h"

namespace det::agent {
namespace {

constexpr Duration kCleanup = std::chrono::minutes(1);

/// Environment entry that every process of the allocation inherits. It names the directory rather than the
/// id: ids derive from the experiment's seed, so two clusters on one machine can have equal ones.
std::string mark_of(const TaskDir& dir) { return "DET_RUN_DIR=" + dir.run(); }

/// The agent's environment without DET_*, plus the mark that identifies leftover processes.
std::vector<std::string> supervisor_environment(const TaskDir& dir) {
  std::vector<std::string> lines = process_environment();
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("DET_"); });
  lines.push_back(mark_of(dir));
  return lines;
}

Status write_note(const std::string& path, const Exit& exit) {
  const Json value{{"kind", static_cast<int>(exit.kind)}, {"code", exit.code}, {"message", exit.message}};
  return replace_file(path, dump_json(value), 0600);
}

std::optional<Exit> read_note(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto value = parse_json(*text);
  if (!value || !value->is_object()) return std::nullopt;
  const int kind = value->value("kind", -1);
  if (kind < 0 || kind > static_cast<int>(Exit::Kind::kHung)) return std::nullopt;
  return Exit{static_cast<Exit::Kind>(kind), value->value("code", 0), value->value("message", std::string())};
}

Phase phase_of(const TaskSpec& spec) { return spec.attaches ? Phase::kStarting : Phase::kRunning; }

}  // namespace

Runtime::~Runtime() {
  // Detaching keeps Child's destructor from killing the supervisor.
  for (auto& [id, process] : processes_) {
    if (process.child) process.child->detach();
  }
}

Status Runtime::keep(const AllocationId& id, Process process) {
  process.key = next_key_++;
  TRY(watcher_.watch(process.fd(), process.key));
  processes_.insert_or_assign(id, std::move(process));
  return {};
}

Result<Phase> Runtime::launch(const AllocationId& id) {
  TRY_ASSIGN(const TaskDir dir, data_.allocation(id));
  TRY_ASSIGN(const TaskSpec spec, dir.read_spec());
  std::vector<std::string> argv{programs_ + "/det-supervisor", dir.path()};
  if (warm_start_ != nullptr && spec.attaches) {
    if (auto socket = warm_start_->socket_for(spec, programs_ + "/det-harness")) {
      argv.push_back(std::move(*socket));
    } else {
      log::info("trial starts without det-fork-server",
                {{"allocation", id}, {"reason", socket.error().message}});
    }
  }
  // A new session: signals to the agent's terminal must not reach the supervisor.
  TRY_ASSIGN(Child child, Child::spawn({.argv = std::move(argv),
                                        .env = supervisor_environment(dir),
                                        .cwd = dir.path(),
                                        .in = spec.ends_with_agent ? Stream::pipe() : Stream::null(),
                                        .err = Stream::file(dir.path() + "/supervisor.err"),
                                        .new_session = true}));
  TRY(keep(id, {0, std::move(child), {}}));
  return phase_of(spec);
}

std::optional<Phase> Runtime::reattach(const AllocationId& id) {
  const auto dir = data_.allocation(id);
  if (!dir) return std::nullopt;
  const auto process = dir->read_supervisor();
  const auto spec = dir->read_spec();
  if (!process || !spec) return std::nullopt;
  // open_process() compares start times, so a reused pid is not mistaken for the supervisor.
  UniqueFd pidfd = open_process(*process);
  if (!pidfd || !keep(id, {0, std::nullopt, std::move(pidfd)})) return std::nullopt;
  return phase_of(*spec);
}

void Runtime::terminate(const AllocationId& id, const Exit& stop) {
  if (const auto dir = data_.allocation(id)) {
    if (auto written = write_stop(*dir, stop); !written) log::warn(written.error().message);
  }
  // Through the pidfd: the pid may have been reused.
  if (const auto it = processes_.find(id); it != processes_.end()) request_stop(it->second.fd());
}

void Runtime::kill_hard(const AllocationId& id) {
  log::warn("supervisor does not end; sending SIGKILL", {{"allocation", id}});
  const auto it = processes_.find(id);
  if (it != processes_.end()) (void)::syscall(SYS_pidfd_send_signal, it->second.fd(), SIGKILL, nullptr, 0);
}

std::optional<AllocationId> Runtime::ended(std::uint64_t key) {
  for (auto it = processes_.begin(); it != processes_.end(); ++it) {
    if (it->second.key != key) continue;
    AllocationId id = it->first;
    // The process has ended, so this only reaps it.
    if (it->second.child) (void)it->second.child->wait(std::chrono::seconds(10));
    processes_.erase(it);
    return id;
  }
  return std::nullopt;
}

Exit conclude_end(const AllocationId& id, const TaskDir& dir) {
  if (const auto exit = dir.read_exit()) return classify_exit(*exit);
  if (!kill_with_environment(mark_of(dir), kCleanup)) {
    log::error("processes of the allocation survive SIGKILL", {{"allocation", id}});
  }
  return {Exit::Kind::kLost, 0, "the supervisor was killed"};
}

Status write_stop(const TaskDir& dir, const Exit& stop) {
  return write_note(dir.path() + "/stop.json", stop);
}
std::optional<Exit> read_stop(const TaskDir& dir) { return read_note(dir.path() + "/stop.json"); }
Status write_outcome(const TaskDir& dir, const Exit& exit) {
  return write_note(dir.path() + "/outcome.json", exit);
}
std::optional<Exit> read_outcome(const TaskDir& dir) { return read_note(dir.path() + "/outcome.json"); }

}  // namespace det::agent
