#include "cli/submit/follow.h"

#include <iostream>
#include <thread>

#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "cli/submit/trial_progress.h"
#include "common/base/queue.h"
#include "common/base/wait.h"
#include "det/v1/explanation.methods.h"

namespace det::cli {
namespace {

// Ten years: wait_until() needs a limit.
constexpr Duration kForEver = std::chrono::hours(24 * 365 * 10);
/// Time that a master may be unreachable, for example during an upgrade.
constexpr Duration kFollowPatience = std::chrono::minutes(10);
/// Polling interval of the end, and refresh interval of the status line.
constexpr Duration kOften = std::chrono::milliseconds(200);
/// Polling intervals of the trial's state, and of the reason why it waits.
constexpr Duration kReadingInterval = std::chrono::seconds(1), kReasonInterval = std::chrono::seconds(10);
/// Lines between the reader thread and the terminal; a full queue blocks the reader (backpressure).
constexpr std::size_t kMaxWaitingLines = 1000;

/// Shows the state of an experiment's first trial. Single-threaded.
class StateLine {
 public:
  StateLine(Client& client, int experiment) : client_(client), experiment_(experiment) {}

  /// Shows the line. Asks the master for the state when the last reading is old; ignores its errors, because
  /// the followed log reports them. `trial`: 0 while the experiment has none.
  void refresh(int trial) {
    const MonoTime now = mono_now();
    if (now >= next_reading_) {
      next_reading_ = now + kReadingInterval;
      read(trial, now);
    }
    line_.show("experiment " + std::to_string(experiment_) + ": " + progress_.text(now, reason_), now);
  }
  /// Makes room for other lines.
  void hide() { line_.hide(); }

 private:
  void read(int trial, MonoTime now) {
    TrialReading reading;
    if (trial != 0) {
      const auto found = get_trial(client_, trial);
      if (!found) return;
      reading = {found->state(), found->total_batches_processed(), found->progress()};
    }
    progress_.add(reading, now);
    const bool waits = reading.state == v1::STATE_UNSPECIFIED || reading.state == v1::STATE_QUEUED ||
                       reading.state == v1::STATE_ACTIVE;
    if (!waits || now < next_reason_) return;
    next_reason_ = now + kReasonInterval;
    v1::ExplainExperimentRequest request;
    request.set_experiment_id(experiment_);
    const auto response = client_.call(v1::ExplanationService::ExplainExperiment, request);
    if (!response) return;
    const std::string& text = response->explanation().text();
    reason_ = printable(text.substr(0, text.find('\n')));
  }

  Client& client_;
  const int experiment_;
  StatusLine line_;
  TrialProgress progress_;
  std::string reason_;  ///< why the trial waits; "" when unknown
  MonoTime next_reading_, next_reason_;
};

/// Returns the id of the first trial; 0 when the experiment ends without one.
Result<int> wait_for_first_trial(Client& client, int experiment, StateLine& state) {
  int id = 0;
  TRY(ask_until(kOften, [&]() -> Result<bool> {
    TRY_ASSIGN(const auto trials, get_trials(client, experiment, Paging{.limit = 1}));
    if (!trials.empty()) id = trials.front().id();
    if (id != 0) return true;
    state.refresh(0);
    TRY_ASSIGN(const v1::Experiment now, get_experiment(client, experiment));
    return is_terminal_state(now.state());
  }));
  return id;
}

/// Prints the log until the trial has ended. A second thread reads it, so that the status moves while no
/// lines arrive.
Status print_followed_log(Client& client, int trial, StateLine& state) {
  Queue<std::string> lines(kMaxWaitingLines);
  Status ended;
  std::jthread reader([&] {
    v1::TrialLogsRequest request;
    request.set_trial_id(trial);
    ended =
        follow_log(client, request, [&](const v1::LogEntry& entry) { lines.push(shown_log_line(entry)); });
    lines.close();
  });
  for (;;) {
    // Read before the pop: a queue that is closed and then found empty yields no more lines.
    const bool all_there = lines.closed();
    const std::vector<std::string> batch = lines.pop_batch(kMaxWaitingLines, kOften);
    // Lines scroll above the status, which is redrawn below them.
    if (!batch.empty()) state.hide();
    for (const std::string& line : batch) std::cout << line;
    std::cout.flush();
    if (batch.empty() && all_there) break;
    state.refresh(trial);
  }
  state.hide();
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
  StateLine state(client, experiment);
  TRY_ASSIGN(const int trial, wait_for_first_trial(client, experiment, state));
  state.hide();
  if (trial != 0) {
    std::cout << "Following first trial with ID " << trial << std::endl;
    TRY(print_followed_log(client, trial, state));
    std::cout << "Trial log stream ended. To see it again: det trial logs " << trial << std::endl;
  }
  // The log ends with the first trial; other trials of a search may still run.
  TRY_ASSIGN(const v1::Experiment end, wait_for_end(client, experiment, kOften));
  std::cout << "Experiment " << experiment << " is " << state_text(end.state()) << std::endl;
  return exit_code(end);
}

}  // namespace det::cli
