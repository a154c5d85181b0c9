// Thread that waits for the ends of processes and for the signals that stop the agent.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det::agent {

/// Waits on pidfds and signals with epoll.
class Watcher {
 public:
  /// Callbacks, run on the watcher's thread.
  struct Events {
    /// The process registered with this key has ended.
    std::function<void(std::uint64_t key)> ended;
    std::function<void(int)> stop_asked;  ///< this signal arrived: SIGTERM or SIGINT
  };
  /// Starts the thread. Blocks SIGTERM and SIGINT in the calling thread and all threads that it starts later,
  /// so it must be called before any other thread exists. Errors: of epoll, signalfd and eventfd.
  static Result<std::unique_ptr<Watcher>> start(Events events);
  ~Watcher();

  /// Calls ended(key) once when the process of `pidfd` has ended. The caller keeps the descriptor open until
  /// then. Thread-safe.
  Status watch(int pidfd, std::uint64_t key);

 private:
  Watcher(Events events, UniqueFd epoll, UniqueFd signals, UniqueFd quit)
      : events_(std::move(events)),
        epoll_(std::move(epoll)),
        signals_(std::move(signals)),
        quit_(std::move(quit)) {}
  // Body of the thread.
  void run();

  Events events_;
  /// epoll instance, signalfd, and the eventfd that ends the thread.
  UniqueFd epoll_, signals_, quit_;
  std::thread thread_;
};

}  // namespace det::agent
