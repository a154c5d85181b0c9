// Owns the thread that waits for ends of processes and for the signals that end the agent.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace det::agent {

class Watcher {
 public:
  struct Events {
    std::function<void(std::uint64_t key)> ended;
    std::function<void()> stop_asked;  ///< SIGTERM or SIGINT came
  };
  /// Blocks SIGTERM and SIGINT in the calling thread and so in all that it starts: call it first. The
  /// callbacks run on the watcher's thread.
  static Result<std::unique_ptr<Watcher>> start(Events events);
  ~Watcher();

  /// Once the process of `pidfd` has ended, ended(key) is called, once. The descriptor stays the caller's and
  /// must stay open until then. Any thread.
  Status watch(int pidfd, std::uint64_t key);

 private:
  Watcher(Events events, UniqueFd epoll, UniqueFd signals, UniqueFd quit)
      : events_(std::move(events)),
        epoll_(std::move(epoll)),
        signals_(std::move(signals)),
        quit_(std::move(quit)) {}
  void run();

  Events events_;
  UniqueFd epoll_, signals_, quit_;
  std::thread thread_;
};

}  // namespace det::agent
