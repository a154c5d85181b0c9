// Event bus inside the master: delivers durable changes, numbered and in order, to the event stream and the
// log followers. An event only signals that something is new; subscribers read the data from the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <variant>

#include "common/base/queue.h"
#include "master/loop/change.h"

namespace det::loop {

/// A change with its number.
struct Event {
  /// Increases, also across restarts of the master: numbering starts at the wall clock in microseconds.
  std::uint64_t id = 0;
  Change change;
};

/// Distributes changes to listeners on a thread of its own. Keeps the latest events for resumed
/// subscriptions.
class Hub {
 public:
  /// Callback on the hub's thread. Must be quick and must not call the hub. A null event means that a resumed
  /// subscription has missed changes that are no longer kept.
  using Listener = std::function<void(const std::shared_ptr<const Event>&)>;
  /// Handle of a subscription, never reused.
  using Subscription = std::uint64_t;

  /// `kept`: number of past events kept for resumed subscriptions.
  explicit Hub(std::size_t kept = 4096);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // Thread-safe. Each call but last() blocks while the queue is full (65,536 entries).

  /// Publishes a change.
  void publish(Change change);
  /// Delivers all events published from now on. If `after` is not 0, first delivers the kept events with a
  /// larger number.
  Subscription subscribe(Listener listener, std::uint64_t after = 0);
  /// Number of the last event. Data that is read after this call contains all changes up to it.
  std::uint64_t last() const { return last_.load(std::memory_order_acquire); }
  /// Ends a subscription. The listener may still be called until the hub reaches this request, so it must own
  /// what it uses.
  void unsubscribe(Subscription subscription);
  /// Stops after the queued requests and joins the thread. Later calls do nothing. Idempotent.
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
  /// Fills in the experiment and trial of a change that only has a task.
  void complete(Change& change);

  Queue<std::variant<Change, Subscribe, Unsubscribe>> queue_{1 << 16};
  const std::size_t kept_;
  std::atomic<Subscription> next_subscription_{1};
  std::uint64_t next_event_;         ///< of the hub's thread
  std::atomic<std::uint64_t> last_;  ///< next_event_ - 1
  std::deque<std::shared_ptr<const Event>> ring_;
  std::map<Subscription, Listener> listeners_;
  /// Trial of each task seen so far: log changes carry only the task. Cleared at 100,000 entries.
  std::map<TaskId, std::pair<ExperimentId, TrialId>> tasks_;
  std::thread thread_;
};

}  // namespace det::loop
