// The simulated harness. Its reporter follows the contract of the real one: in order, each report until
// acknowledged, and all unacknowledged ones again after a reconnect.
#include "tests/sim/process.h"

#include <algorithm>
#include <utility>

#include "common/base/exit_codes.h"
#include "common/crypto/digest.h"

namespace det::sim {

using core::ExitKind;

Process::Process(Engine& engine, Master& master, Checker& checker, const Job& job,
                 core::StartAllocation start, ProcessTruth truth, OnExit on_exit)
    : engine_(engine),
      master_(master),
      checker_(checker),
      job_(job),
      start_(std::move(start)),
      truth_(std::move(truth)),
      on_exit_(std::move(on_exit)) {}

void Process::after(Duration delay, std::function<void()> what) {
  engine_.after(delay, [self = shared_from_this(), what = std::move(what)] {
    if (self->alive_) what();
  });
}

void Process::begin() {
  alive_ = true;
  steps_ = saved_ = start_.trial.latest_steps;
  checkpoint_ = start_.trial.latest_checkpoint;
  engine_.trace("process " + start_.allocation.id.value +
                (truth_.part != 0 ? " part " + std::to_string(truth_.part) : "") + " begins at " +
                std::to_string(steps_));
  checker_.process_started(truth_);
  if (start_.command) return obey();
  if (truth_.part != 0) return follow();
  connect();
  watch();
  if (job_.detached) say_alive();
  start_training();
}

/// Starts from the checkpoint, or from the replacement that the master returns for a damaged one.
void Process::start_training() {
  if (job_.damages && !checkpoint_.empty() && engine_.chance(30))
    checker_.checkpoint_damaged(CheckpointId(checkpoint_));
  if (!checker_.is_damaged(CheckpointId(checkpoint_))) return train();
  engine_.trace("process " + start_.allocation.id.value + " finds checkpoint " + checkpoint_ + " damaged");
  report(core::ReportDamage{0, start_.trial.id, start_.allocation.run, CheckpointId(checkpoint_), "damaged",
                            std::nullopt});
}

void Process::obey() {
  if (job_.hangs) return;
  after(job_.chunk_time, [this] {
    if (job_.failures == 0) return exit(ExitKind::kSucceeded, 0, "exit code 0");
    checker_.process_failed(truth_.task);
    exit(ExitKind::kFailed, 1, "exit code 1");
  });
}

void Process::say_alive() {
  after(seconds(10), [this] {
    if (unacked_.empty()) report(core::HarnessAlive{0, start_.trial.id, start_.allocation.run});
    say_alive();
  });
}

void Process::connect() {
  session_ = std::make_shared<Session>(engine_);
  const std::uint64_t number = ++session_number_;
  last_heard_ = engine_.now();
  // Delivered even if the process has abandoned the session meanwhile: the master must tolerate late
  // attaches.
  session_->up.send([self = shared_from_this(), session = session_, number] {
    if (!self->master_.up()) return;
    session->life = self->master_.life();
    if (!self->admitted()) return;
    self->master_.open_harness(self->start_.allocation.id, number, [self, session] {
      session->down.send([self, session] {
        if (self->alive_ && self->session_ == session) self->preempted_ = true;
      });
    });
    self->master_.submit(core::HarnessAttached{0, self->start_.trial.id, self->start_.allocation.run},
                         [self, session](Answer answer) {
                           session->down.send([self, session, answer] { self->attached(session, answer); });
                         });
  });
}

bool Process::admitted() {
  const auto found = master_.core()->allocations().find(start_.allocation.id);
  if (found == master_.core()->allocations().end() || found->second.has_token(sha256_hex(start_.token)))
    return true;
  // A machine that has restarted may have got another token for the allocation of a process that is gone.
  if (alive_) checker_.fail("the token of a process of " + start_.allocation.id.value + " is refused");
  return false;
}

void Process::attached(const std::shared_ptr<Session>& session, const Answer& answer) {
  if (!alive_ || session != session_) return;
  last_heard_ = engine_.now();
  if (!answer) return exit(ExitKind::kFailed, 75, "stale: " + answer.error().message);
  if (std::get<core::Attached>(*answer).preempt) preempted_ = true;
  session->ready = true;
  for (const Report& report : unacked_) send(session, report);
}

void Process::watch() {
  after(seconds(5), [this] {
    const bool waiting = !session_->ready || !unacked_.empty();
    if (waiting && engine_.now() - last_heard_ > seconds(15)) connect();
    watch();
  });
}

void Process::cut() {
  if (!session_) return;
  engine_.trace("harness " + start_.allocation.id.value + " is cut off");
  master_.close_harness(start_.allocation.id, session_number_);
  // In half of the cases the master still receives messages, and only its replies are lost.
  if (engine_.chance(50)) session_->up.close();
  session_->down.close();
}

void Process::report(core::Input input) {
  unacked_.push_back({next_report_++, std::move(input)});
  if (session_->ready) send(session_, unacked_.back());
}

void Process::send(const std::shared_ptr<Session>& session, const Report& report) {
  if (unacked_.size() == 1) last_heard_ = engine_.now();
  session->up.send(
      [self = shared_from_this(), session, report] {
        if (session->life != self->master_.life()) return;
        core::Input input = report.input;
        if (auto* damage = std::get_if<core::ReportDamage>(&input))
          damage->older = self->master_.disk().older(damage->trial, damage->uuid);
        self->master_.submit(std::move(input), [self, session, number = report.number](Answer answer) {
          session->down.send([self, number, answer] { self->acknowledged(number, answer); });
        });
      },
      minutes(1));
}

void Process::acknowledged(std::uint64_t number, const Answer& answer) {
  if (!alive_) return;
  last_heard_ = engine_.now();
  if (!answer) {
    engine_.trace("report of " + start_.allocation.id.value + " refused: " + answer.error().message);
    if (answer.error().code == Code::kAborted) exit(ExitKind::kFailed, 75, "stale");
    return;
  }
  // Replies arrive in order. A repeated one belongs to a report acknowledged before.
  if (unacked_.empty() || unacked_.front().number != number) return;
  check_ack(unacked_.front().input);
  unacked_.pop_front();
  if (const auto* resume = std::get_if<core::ResumeFrom>(&*answer)) {
    checkpoint_ = resume->checkpoint;
    steps_ = saved_ = resume->steps_completed;
    return start_training();
  }
  if (terminating_) leave();
}

void Process::check_ack(const core::Input& input) {
  if (auto* validation = std::get_if<core::ReportValidation>(&input)) {
    checker_.acked_validation(validation->trial, validation->run, validation->steps_completed,
                              master_.disk());
  } else if (auto* checkpoint = std::get_if<core::ReportCheckpoint>(&input)) {
    checker_.acked_checkpoint(checkpoint->uuid, master_.disk());
  }
}

void Process::follow() {
  after(engine_.between(milliseconds(100), seconds(4)), [this] {
    if (checker_.chief_ended_well(truth_)) {
      return after(engine_.between(Duration(0), seconds(8)),
                   [this] { exit(ExitKind::kSucceeded, 0, "exit code 0"); });
    }
    if (checker_.gang(truth_) == Checker::Gang::kBroken) return miss_a_peer();
    follow();
  });
}

void Process::miss_a_peer() {
  // The other half of the cases: it waits for its peer until it is killed.
  if (!std::exchange(misses_peer_, true) && engine_.chance(50)) exit(ExitKind::kFailed, 1, "a peer is gone");
}

void Process::train() {
  after(job_.chunk_time, [this] {
    if (terminating_) return;
    const Checker::Gang gang = checker_.gang(truth_);
    if (gang == Checker::Gang::kBroken) return miss_a_peer();
    if (gang == Checker::Gang::kGathers) return train();
    // The spool is full, so training waits for the master.
    if (unacked_.size() > 20) return train();
    work();
  });
}

void Process::work() {
  const auto& trial = start_.trial;
  const RunNumber run = start_.allocation.run;
  // An extension reaches the runs that start after it.
  const std::int64_t total = std::max(job_.total, start_.config->searcher.max_time.value_or(0));
  if (job_.has_invalid_hp(trial.seed)) {
    terminating_ = true;
    return report(core::ReportInvalidHp{0, trial.id, run});
  }
  if (job_.loses_itself && !job_.detached) {
    checker_.process_lost_itself(trial.id);
    return exit(ExitKind::kLost, 0, "the supervisor is gone");
  }
  if (job_.has_log_policy() && engine_.chance(10)) match_log_policy();
  if (steps_ < total) {
    steps_ = std::min(steps_ + job_.chunk, total);
    if (steps_ == job_.fail_at && checker_.failures(trial.id) < job_.failures) {
      return fail();
    }
    if (steps_ % job_.validate_every == 0 || steps_ == total) {
      std::optional<double> metric = metric_of(job_, trial.seed, steps_);
      if (job_.has_no_metric(trial.seed)) metric.reset();
      report(core::ReportValidation{0, trial.id, run, steps_, "{}", metric, std::nullopt,
                                    WallTime{engine_.now().micros}});
    }
    if (steps_ % job_.checkpoint_every == 0 || steps_ == total) save();
    report(core::ReportProgress{0, trial.id, run, static_cast<double>(steps_) / static_cast<double>(total),
                                steps_});
  }
  if (steps_ >= total && job_.hangs) return train();
  if (steps_ >= total) {
    checker_.program_finished(trial.id);
    terminating_ = true;
    if (job_.detached) return report(core::EndTrial{0, trial.id, run, core::State::kCompleted, ""});
    return leave();
  }
  if (preempted_ && !job_.ignores_preemption) {
    terminating_ = true;
    if (saved_ != steps_) save();
    return report(core::AcknowledgePreemption{0, trial.id, run});
  }
  train();
}

void Process::fail() {
  if (job_.has_log_policy() && engine_.chance(50)) match_log_policy();
  checker_.process_failed(start_.trial.id);
  // A detached process reports its exit itself, or ends without a report.
  if (!job_.detached || engine_.chance(50)) {
    if (job_.failure == Job::Failure::kPlain) return exit(ExitKind::kFailed, kExitFailed, "exit code 1");
    checker_.process_failed_for_good(start_.trial.id);
    const std::string error = "\nerror: train_batch (batch " + std::to_string(steps_) + "): no such class";
    const int code = job_.failure == Job::Failure::kFinal ? kExitFinal : kExitRepeatable;
    return exit(ExitKind::kFailed, code, "exit code " + std::to_string(code) + error);
  }
  terminating_ = true;
  report(core::EndTrial{0, start_.trial.id, start_.allocation.run, core::State::kError, "exit code 1"});
}

void Process::match_log_policy() {
  // Lines of the log arrive through the agent: neither the session nor the run of the trial matters.
  const std::string log = "the log of " + start_.allocation.id.value;
  if (job_.cancels_retries && engine_.chance(50)) {
    engine_.trace(log + " cancels retries");
    if (master_.up()) master_.submit(core::CancelRetries{start_.trial.id});
  }
  // At most one agent for each trial, so that another one stays.
  if (job_.excludes_agent && start_.trial.excluded.empty()) {
    engine_.trace(log + " excludes " + start_.agent.value);
    if (master_.up()) master_.submit(core::ExcludeAgent{start_.trial.id, start_.agent});
  }
}

void Process::save() {
  saved_ = steps_;
  report(core::ReportCheckpoint{0, start_.trial.id, start_.allocation.run,
                                CheckpointId(engine_.random().uuid()), steps_, "{}", "{}",
                                WallTime{engine_.now().micros}});
}

void Process::leave() {
  if (!unacked_.empty() || std::exchange(tearing_down_, true)) return;
  after(engine_.between(Duration(0), seconds(8)), [this] { exit(ExitKind::kSucceeded, 0, "exit code 0"); });
}

void Process::terminate(Duration grace) {
  after(engine_.between(Duration(0), grace),
        [this] { exit(ExitKind::kStopped, 143, "killed by signal 15"); });
}

void Process::crash() {
  if (!alive_) return;
  checker_.process_failed(truth_.task);
  exit(ExitKind::kFailed, 137, "killed by signal 9");
}

void Process::fail_on_device() {
  exit(ExitKind::kFailed, kExitFailed, "exit code 1\nerror: CUDA error: unspecified launch failure");
}

void Process::gone(bool well) {
  if (!alive_) return;
  alive_ = false;
  checker_.process_ended(truth_, well);
}

void Process::exit(ExitKind kind, int code, const std::string& message) {
  if (!alive_) return;
  engine_.trace("process " + start_.allocation.id.value +
                (truth_.part != 0 ? " part " + std::to_string(truth_.part) : "") + " exits at " +
                std::to_string(steps_) + ": " + message);
  gone(kind == ExitKind::kSucceeded);
  on_exit_({kind, code, message});
}

}  // namespace det::sim
