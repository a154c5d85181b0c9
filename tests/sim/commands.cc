#include "tests/sim/commands.h"

#include <utility>

namespace det::sim {

void CommandUser::start() {
  engine_.after(plan_.submit, [self = shared_from_this()] { self->submit(); });
}

bool CommandUser::has_ended() const {
  for (const auto& [id, row] : master_.disk().commands) {
    if (row.task == plan_.task) return core::is_terminal(row.state);
  }
  return false;
}

void CommandUser::attempt(const core::Input& input, const std::shared_ptr<Then>& then) {
  if (!*then) return;
  const int copies = engine_.chance(5) ? 0 : engine_.chance(10) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    engine_.after(engine_.between(milliseconds(1), engine_.chance(5) ? seconds(8) : milliseconds(20)),
                  [self = shared_from_this(), input, then] {
                    if (!self->master_.up()) return;
                    // Like the API: the core drops commands that ended long ago.
                    if (self->has_ended()) {
                      if (auto call = std::exchange(*then, nullptr)) call(Answer(core::Done{}));
                      return;
                    }
                    self->master_.submit(input, [self, then](const Answer& answer) {
                      if (self->engine_.chance(5)) return;  // The reply is lost.
                      if (auto call = std::exchange(*then, nullptr)) call(answer);
                    });
                  });
  }
  engine_.after(engine_.between(seconds(2), seconds(6)),
                [self = shared_from_this(), input, then] { self->attempt(input, then); });
}

void CommandUser::submit() {
  engine_.trace("user submits command " + plan_.task.value);
  core::SubmitCommand input{.task = plan_.task, .config = plan_.config};
  attempt(input, std::make_shared<Then>([self = shared_from_this()](const Answer& answer) {
            if (!answer)
              return self->checker_.fail("command " + self->plan_.task.value +
                                         " was refused: " + answer.error().message);
            self->checker_.acked_command(self->plan_.task, self->master_.disk());
            if (!self->plan_.pause_after) return self->kill_or_finish();
            self->engine_.after(*self->plan_.pause_after, [self] { self->pause(); });
          }));
}

// A command that has ended meanwhile refuses both; the rest of the plan then changes nothing.
void CommandUser::pause() {
  engine_.trace("user pauses command " + plan_.task.value);
  attempt(core::PauseCommand{0, plan_.task},
          std::make_shared<Then>([self = shared_from_this()](const Answer&) {
            self->engine_.after(self->plan_.pause_time, [self] { self->resume(); });
          }));
}

void CommandUser::resume() {
  engine_.trace("user resumes command " + plan_.task.value);
  attempt(core::ResumeCommand{0, plan_.task},
          std::make_shared<Then>([self = shared_from_this()](const Answer& answer) {
            // Its processes have not ended.
            if (!answer && answer.error().code == Code::kFailedPrecondition && !self->has_ended()) {
              self->engine_.after(seconds(1), [self] { self->resume(); });
              return;
            }
            self->insist();
            self->kill_or_finish();
          }));
}

void CommandUser::insist() {
  // A late copy of the pause may arrive after the resumption.
  engine_.after(seconds(20), [self = shared_from_this()] {
    if (self->has_ended()) return;
    self->attempt(core::ResumeCommand{0, self->plan_.task},
                  std::make_shared<Then>([self](const Answer&) { self->insist(); }));
  });
}

void CommandUser::kill_or_finish() {
  if (plan_.kill_after) {
    engine_.after(*plan_.kill_after, [self = shared_from_this()] { self->kill(); });
  } else {
    done_ = true;
  }
}

void CommandUser::kill() {
  engine_.trace("user kills command " + plan_.task.value);
  attempt(core::KillCommand{0, plan_.task},
          std::make_shared<Then>([self = shared_from_this()](const Answer&) {
            self->checker_.acked_kill(self->plan_.task, self->master_.disk());
            self->done_ = true;
          }));
}

}  // namespace det::sim
