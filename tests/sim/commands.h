// Simulated users of commands: each submits one and may kill it. Every request repeats until it is answered.
#pragma once

#include <functional>
#include <memory>

#include "tests/sim/checker.h"
#include "tests/sim/engine.h"
#include "tests/sim/master.h"
#include "tests/sim/plan.h"

namespace det::sim {

class CommandUser : public std::enable_shared_from_this<CommandUser> {
 public:
  CommandUser(Engine& engine, Master& master, Checker& checker, const CommandPlan& plan)
      : engine_(engine), master_(master), checker_(checker), plan_(plan) {}

  void start();
  bool done() const { return done_; }

 private:
  using Then = std::function<void(const Answer&)>;
  void attempt(const core::Input& input, const std::shared_ptr<Then>& then);
  bool has_ended() const;
  void submit();
  void pause();
  void resume();
  /// Resumes again and again until the command ends.
  void insist();
  void kill_or_finish();
  void kill();

  Engine& engine_;
  Master& master_;
  Checker& checker_;
  const CommandPlan& plan_;
  bool done_ = false;
};

}  // namespace det::sim
