// Owns telling watchers inside the master (event stream, log followers) what changed, in order, each change
// numbered. A watcher only learns that something is new and asks the store for it; nothing here is the truth.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <variant>

#include "base/queue.h"
#include "master/loop/change.h"

namespace det::loop {

struct Event {
  std::uint64_t id =
      0;  ///< increasing, also over restarts of the master (starts at the wall clock in microseconds)
  Change change;
};

class Hub {
 public:
  /// Called on the hub's thread: must be quick, must not call the hub. A null event says that a resumed
  /// watcher has missed changes that are no longer kept.
  using Listener = std::function<void(const std::shared_ptr<const Event>&)>;
  using Subscription = std::uint64_t;

  explicit Hub(std::size_t kept = 4096);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Any thread; each waits while the hub is far behind.
  void publish(Change change);
  /// Hears what is published from now on; before it, when `after` is not 0, what is kept behind the event
  /// `after`.
  Subscription subscribe(Listener listener, std::uint64_t after = 0);
  /// The listener may still be called until this request is reached, so it must own what it touches.
  void unsubscribe(Subscription subscription);
  /// Drops everything; later calls do nothing.
  void stop();

 private:
  struct Subscribe {
    Subscription id;
    Listener listener;
    std::uint64_t after;
  };
  struct Unsubscribe {
    Subscription id;
  };
  void run();
  void complete(Change& change);

  Queue<std::variant<Change, Subscribe, Unsubscribe>> queue_{1 << 16};
  const std::size_t kept_;
  std::atomic<Subscription> next_subscription_{1};
  std::uint64_t next_event_;
  std::deque<std::shared_ptr<const Event>> ring_;
  std::map<Subscription, Listener> listeners_;
  /// Which trial a task belongs to, as heard so far: changes of logs name the task alone.
  std::map<TaskId, std::pair<ExperimentId, TrialId>> tasks_;
  std::thread thread_;
};

}  // namespace det::loop
