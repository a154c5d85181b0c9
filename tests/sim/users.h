// Simulated users: each submits one job and executes its plan. Every request repeats until it is answered.
#pragma once

#include <memory>
#include <optional>

#include "tests/sim/checker.h"
#include "tests/sim/engine.h"
#include "tests/sim/master.h"
#include "tests/sim/plan.h"
#include "tests/sim/process.h"

namespace det::sim {

class User : public std::enable_shared_from_this<User> {
 public:
  User(Engine& engine, Master& master, Checker& checker, const Job& job)
      : engine_(engine), master_(master), checker_(checker), job_(job) {}

  void start();
  bool submitted() const { return experiment_.has_value(); }
  /// The process of a detached job, once started.
  const std::shared_ptr<Process>& process() const { return process_; }

 private:
  using Then = std::function<void(const Answer&)>;
  /// Sends until `then` is called once. Requests may be lost or doubled, replies may be lost.
  void ask(core::Input input, Then then);
  void attempt(const core::Input& input, const std::shared_ptr<Then>& then);
  /// The API reads ended experiments from the store, because the core drops them.
  bool answered_from_store(const core::Input& input, const std::shared_ptr<Then>& then) const;
  void submit();
  void submitted(const Answer& answer);
  void act(std::size_t next);
  void insist();
  void begin_process();
  std::optional<core::Input> request(const Job::Action& action) const;
  core::Input more(const Job::Action& action) const;

  Engine& engine_;
  Master& master_;
  Checker& checker_;
  const Job& job_;
  std::optional<ExperimentId> experiment_;
  std::shared_ptr<Process> process_;
};

}  // namespace det::sim
