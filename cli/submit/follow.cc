#include "cli/submit/follow.h"

#include <iostream>
#include <thread>

#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "common/base/queue.h"
#include "common/base/wait.h"

namespace det::cli {
namespace {

// Ten years: wait_until() needs a limit.
constexpr Duration kForEver = std::chrono::hours(24 * 365 * 10);
/// Time that a master may be unreachable, for example during an upgrade.
constexpr Duration kFollowPatience = std::chrono::minutes(10);
/// Polling interval, and refresh interval of the progress bar.
constexpr Duration kOften = std::chrono::milliseconds(200);
/// Lines between the reader thread and the terminal; a full queue blocks the reader (backpressure).
constexpr std::size_t kMaxWaitingLines = 1000;

/// Returns the id of the first trial; 0 when the experiment ends without one.
Result<int> wait_for_first_trial(Client& client, int experiment) {
  int id = 0;
  TRY(ask_until(kOften, [&]() -> Result<bool> {
    TRY_ASSIGN(const auto trials, get_trials(client, experiment, Paging{.limit = 1, .pages = "1"}));
    if (!trials.empty()) id = trials.front().id();
    if (id != 0) return true;
    TRY_ASSIGN(const v1::Experiment now, get_experiment(client, experiment));
    return is_terminal_state(now.state());
  }));
  return id;
}

/// Prints the log until the trial has ended. A second thread reads it, so that the progress bar moves while
/// no lines arrive.
Status print_followed_log(Client& client, int experiment, int trial) {
  Queue<std::string> lines(kMaxWaitingLines);
  Status ended;
  std::jthread reader([&] {
    v1::TrialLogsRequest request;
    request.set_trial_id(trial);
    ended = follow_log(client, request, [&](const v1::LogEntry& entry) { lines.push(log_line(entry)); });
    lines.close();
  });
  ProgressBar bar("experiment " + std::to_string(experiment));
  MonoTime next_look = mono_now();
  for (;;) {
    // Read before the pop: a queue that is closed and then found empty yields no more lines.
    const bool all_there = lines.closed();
    const std::vector<std::string> batch = lines.pop_batch(kMaxWaitingLines, kOften);
    // Lines scroll above the bar, which is redrawn below them.
    if (!batch.empty()) bar.hide();
    for (const std::string& line : batch) std::cout << line;
    std::cout.flush();
    if (batch.empty() && all_there) break;
    if (!bar.active() || mono_now() < next_look) continue;
    next_look = mono_now() + kOften;
    const auto now = get_experiment(client, experiment);
    if (now) bar.show(now->progress().value());
  }
  reader.join();
  return ended;
}

}  // namespace

Status ask_until(Duration interval, const std::function<Result<bool>()>& ask) {
  Status failure;
  MonoTime next = mono_now();
  wait_until(
      [&] {
        if (mono_now() < next) return false;
        const Result<bool> answer = ask();
        next = mono_now() + interval;
        if (!answer) failure = tl::unexpected(answer.error());
        return !answer || *answer;
      },
      kForEver);
  return failure;
}

Result<v1::Experiment> wait_for_end(Client& client, int experiment, Duration interval) {
  client.set_patience(kFollowPatience);
  v1::Experiment last;
  TRY(ask_until(interval, [&]() -> Result<bool> {
    TRY_ASSIGN(last, get_experiment(client, experiment));
    return is_terminal_state(last.state());
  }));
  return last;
}

int exit_code(const v1::Experiment& experiment) { return experiment.state() == v1::STATE_COMPLETED ? 0 : 1; }

Result<int> follow_experiment(Client& client, int experiment) {
  client.set_patience(kFollowPatience);
  std::cout << "Waiting for first trial to begin..." << std::endl;
  TRY_ASSIGN(const int trial, wait_for_first_trial(client, experiment));
  if (trial != 0) {
    std::cout << "Following first trial with ID " << trial << std::endl;
    TRY(print_followed_log(client, experiment, trial));
    std::cout << "Trial log stream ended. To see it again: det trial logs " << trial << std::endl;
  }
  // The log ends with the first trial; other trials of a search may still run.
  TRY_ASSIGN(const v1::Experiment end, wait_for_end(client, experiment, kOften));
  std::cout << "Experiment " << experiment << " is " << state_text(end.state()) << std::endl;
  return exit_code(end);
}

}  // namespace det::cli
