#include "tests/sim/users.h"

#include <utility>

namespace det::sim {

void User::start() {
  engine_.after(job_.submit, [self = shared_from_this()] { self->submit(); });
}

void User::ask(core::Input input, Then then) { attempt(input, std::make_shared<Then>(std::move(then))); }

void User::attempt(const core::Input& input, const std::shared_ptr<Then>& then) {
  if (!*then) return;
  const int copies = engine_.chance(5) ? 0 : engine_.chance(5) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    engine_.after(engine_.between(milliseconds(1), engine_.chance(5) ? seconds(8) : milliseconds(20)),
                  [self = shared_from_this(), input, then] {
                    if (self->answered_from_store(input, then)) return;
                    self->master_.submit(input, [self, then](Answer answer) {
                      if (self->engine_.chance(5)) return;  // The reply is lost.
                      if (auto call = std::exchange(*then, nullptr)) call(answer);
                    });
                  });
  }
  engine_.after(engine_.between(seconds(2), seconds(6)),
                [self = shared_from_this(), input, then] { self->attempt(input, then); });
}

bool User::answered_from_store(const core::Input& input, const std::shared_ptr<Then>& then) const {
  if (!std::holds_alternative<core::SubmitExperiment>(input) || !master_.up()) return false;
  for (const auto& [id, experiment] : master_.disk().experiments) {
    if (experiment.request_id != job_.id || !core::is_terminal(experiment.state)) continue;
    if (auto call = std::exchange(*then, nullptr)) call(Answer(core::ExperimentCreated{id, true}));
    return true;
  }
  return false;
}

void User::submit() {
  engine_.trace("user submits " + job_.id.value);
  core::SubmitExperiment input;
  input.request_id = job_.id;
  input.config = job_.config;
  input.activate = job_.activate;
  input.detached = job_.detached;
  input.code_archive = job_.code_archive;
  ask(input, [self = shared_from_this()](const Answer& answer) { self->submitted(answer); });
}

void User::submitted(const Answer& answer) {
  if (!answer) return checker_.fail(job_.id.value + " was refused: " + answer.error().message);
  experiment_ = std::get<core::ExperimentCreated>(*answer).experiment;
  checker_.acked_submission(job_.id, *experiment_, master_.disk());
  if (job_.detached) begin_process();
  act(0);
}

void User::begin_process() {
  for (const auto& [id, trial] : master_.disk().trials) {
    if (trial.experiment != *experiment_) continue;
    // The trial expired before its user got the reply.
    if (core::is_terminal(trial.state)) return checker_.process_failed(id);
    core::StartAllocation start{.trial = trial, .experiment = *experiment_, .config = job_.config};
    start.allocation.id = AllocationId(trial.task.value + ".1");
    start.allocation.task = id;
    start.allocation.run = 1;
    process_ = std::make_shared<Process>(
        engine_, master_, checker_, job_, start,
        ProcessTruth{.machine = "the machine of " + job_.id.value, .slots = {}, .task = id, .run = 1},
        [](const core::Exit&) {});
    return process_->begin();
  }
  checker_.fail(job_.id.value + " was taken without its trial");
}

std::optional<core::Input> User::request(const Job::Action& action) const {
  if (action.on == Job::Action::On::kExperiment) return core::ActOnExperiment{0, *experiment_, action.action};
  if (action.on != Job::Action::On::kTrial) return more(action);
  for (const auto& [id, trial] : master_.disk().trials) {
    if (trial.experiment == *experiment_) return core::KillTrial{0, id};
  }
  return std::nullopt;
}

/// Includes the rows of an ended experiment, like the API does.
core::Input User::more(const Job::Action& action) const {
  core::ContinueSearch input{
      .reply = 0, .experiment = *experiment_, .extend = std::nullopt, .ended = nullptr, .canceled = true};
  if (action.on == Job::Action::On::kExtend)
    input.extend = job_.longer > 0 ? searcher::Extended{.max_trials = std::nullopt, .max_time = job_.longer}
                                   : searcher::Extended{job_.config->searcher.max_trials + 2, std::nullopt};
  const auto& stored = master_.disk().experiments;
  if (auto it = stored.find(*experiment_); it != stored.end() && core::is_terminal(it->second.state))
    input.ended = std::make_shared<const core::Recovered>(master_.disk().recover(*experiment_));
  checker_.may_go_on(*experiment_);
  return input;
}

void User::act(std::size_t next) {
  if (next >= job_.actions.size()) return insist();
  const Job::Action& action = job_.actions[next];
  engine_.after(action.at - (engine_.now() - MonoTime{}), [self = shared_from_this(), &action, next] {
    auto input = self->request(action);
    if (!input) return self->act(next + 1);
    self->engine_.trace("user acts on " + self->job_.id.value);
    self->ask(*input, [self, &action, next](const Answer& answer) {
      if (action.ends() && answer) self->checker_.acked_stop(*self->experiment_, self->master_.disk());
      self->act(next + 1);
    });
  });
}

void User::insist() {
  // A late copy of a pause may arrive after the last activate.
  engine_.after(seconds(20), [self = shared_from_this()] {
    self->ask(core::ActOnExperiment{0, *self->experiment_, core::ExperimentAction::kActivate},
              [self](const Answer& answer) {
                if (answer) self->insist();
              });
  });
}

}  // namespace det::sim
