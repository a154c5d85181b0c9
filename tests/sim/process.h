// A simulated harness: one process of one run that trains, reports in order until acknowledged, and exits
// when preempted.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "tests/sim/checker.h"
#include "tests/sim/engine.h"
#include "tests/sim/master.h"
#include "tests/sim/plan.h"

namespace det::sim {

class Process : public std::enable_shared_from_this<Process> {
 public:
  using OnExit = std::function<void(core::Exit)>;
  Process(Engine& engine, Master& master, Checker& checker, const Job& job, core::StartAllocation start,
          ProcessTruth truth, OnExit on_exit);

  void begin();
  bool alive() const { return alive_; }
  /// SIGTERM by its agent: exits within `grace`.
  void terminate(Duration grace);
  /// SIGKILL by another process.
  void crash();
  /// The program fails because its device does. It consumes no restart.
  void fail_on_device();
  /// The machine stops: the exit is never reported.
  void vanish() { gone(false); }
  /// Breaks the connection. The process detects it later.
  void cut();

 private:
  struct Report {
    std::uint64_t number;
    core::Input input;
  };
  struct Session {
    explicit Session(Engine& engine) : up(engine), down(engine) {}
    Pipe up, down;
    /// Life of the master that it reached. A connection does not outlive either end.
    int life = 0;
    bool ready = false;
  };

  void start_training();
  void connect();
  /// Whether the master accepts the token of this process.
  bool admitted();
  void attached(const std::shared_ptr<Session>& session, const Answer& answer);
  void watch();
  void report(core::Input input);
  void send(const std::shared_ptr<Session>& session, const Report& report);
  void acknowledged(std::uint64_t number, const Answer& answer);
  void check_ack(const core::Input& input);
  void gone(bool well);
  void train();
  void follow();
  void miss_a_peer();
  void work();
  void save();
  void leave();
  void obey();  ///< Main loop of a command.
  void say_alive();
  void fail();
  void match_log_policy();  ///< A line of the log cancels the retries of the trial.
  void exit(core::ExitKind kind, int code, const std::string& message);
  /// Starts a timer that is dropped when the process exits.
  void after(Duration delay, std::function<void()> what);

  Engine& engine_;
  Master& master_;
  Checker& checker_;
  const Job& job_;
  core::StartAllocation start_;
  ProcessTruth truth_;
  OnExit on_exit_;

  bool alive_ = false;
  std::string checkpoint_;  ///< Initial checkpoint.
  std::int64_t steps_ = 0, saved_ = -1;
  bool misses_peer_ = false;
  bool preempted_ = false, terminating_ = false, tearing_down_ = false;
  std::shared_ptr<Session> session_;
  std::uint64_t session_number_ = 0;
  MonoTime last_heard_;
  std::deque<Report> unacked_;
  std::uint64_t next_report_ = 0;
};

}  // namespace det::sim
