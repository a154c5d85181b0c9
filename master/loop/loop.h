// The loop thread runs the core. Invariant: no effect is visible before it is durable. Sends, replies and
// changes of a step wait in the outbox until the store reports the writes of the step as durable.
//
//   submit, call, inspect → queue → [loop thread: step, append] → outbox
//     → [release thread: wait until durable] → sinks
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <thread>
#include <variant>
#include <vector>

#include "common/base/queue.h"
#include "common/base/result.h"
#include "master/core/core.h"
#include "master/db/store/store.h"
#include "master/loop/change.h"

namespace det::loop {

/// Reply of the core to an input.
using Answer = Result<core::ReplyValue>;

/// Receivers of released effects. Called on the release thread, one at a time, in the order of the steps.
/// They must be quick and must never block on the loop: submit, `ask` and inspect belong on another thread.
struct Sinks {
  std::function<void(core::Send)> send;
  std::function<void(const Change&)> changed;
};

/// A pending read of the core, returned by Loop::inspect_uncommitted.
class PendingRead {
 public:
  /// Waits until the read has run. Returns false after `timeout`, or if the loop has stopped or its store has
  /// failed. May be called once.
  bool wait(Duration timeout = std::chrono::seconds(30)) {
    return done_.valid() && done_.wait_for(timeout) == std::future_status::ready && done_.get();
  }

 private:
  friend class Loop;
  /// Invalid if the loop refused the read.
  std::future<bool> done_;
};

/// Drives one core and one store with two threads, "loop" and "release". All public functions are
/// thread-safe.
class Loop {
 public:
  /// `clock` supplies the time of each step. `capacity`: length of the input queue and of the outbox.
  Loop(core::Core core, db::Store& store, std::function<core::Now()> clock, std::size_t capacity = 8192);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Starts the store's writer and both threads. The sinks must outlive the loop. `failed` is called once,
  /// from any thread, when the store can no longer write: nothing is released from then on and the process
  /// must exit.
  void start(Sinks sinks, std::function<void(Error)> failed);
  /// Refuses new inputs, processes the queued ones, and waits until their effects are durable and released.
  /// After a store failure, pending callers get kUnavailable. Stops the store's writer. Idempotent.
  void stop();

  /// Queues an input without a reply. Blocks while the queue is full. Returns false after stop().
  bool submit(core::Input input);
  /// Queues an input; `answer` gets its reply on the release thread, core::Done if this kind of input has no
  /// reply. After stop(), `answer` gets kUnavailable at once on the calling thread. Blocks while the queue is
  /// full.
  void call(core::Input input, const std::function<void(Answer)>& answer);
  /// Like call(), but blocks for the reply. Errors: kDeadlineExceeded after `timeout` (the input may still
  /// take effect), kUnavailable. Must not be called from a sink.
  Answer ask(core::Input input, Duration timeout = std::chrono::seconds(30));
  /// Runs `read` on the loop thread and blocks until it has run and everything it may have seen is durable.
  /// Errors: kUnavailable after `timeout`, or if the loop has stopped; `read` may then still run, so it must
  /// own its state (shared_ptr). Must not be called from a sink.
  Status inspect(std::function<void(const core::Core&)> read, Duration timeout = std::chrono::seconds(30));
  /// Like inspect(), but does not wait for durability and returns at once. The result may be undone by a
  /// restart, so use it only to prepare an input, which the core validates again, and never for output to
  /// users. `read` must own its state.
  PendingRead inspect_uncommitted(std::function<void(const core::Core&)> read);

  /// Counters since start().
  struct Stats {
    std::uint64_t steps = 0;
    double step_seconds = 0;  ///< total time in the core
    std::size_t queued = 0;   ///< inputs waiting for the core
    /// Write groups appended but not durable.
    std::uint64_t undurable = 0;
  };
  Stats stats() const;

 private:
  struct Call {
    // An input; `answer` may be null.
    core::Input input;
    std::function<void(Answer)> answer;
  };
  // A read of the core.
  struct Inspection {
    std::function<void(const core::Core&)> read;
    std::function<void(bool)> released;  ///< true: the read may be used
    /// Call `released` only when everything seen is durable.
    bool durable = true;
  };
  using Item = std::variant<Call, Inspection>;
  // Effects of one batch of inputs, released together.
  struct ReleasedBatch {
    /// Released when this sequence is durable.
    db::Sequence after = 0;
    std::vector<core::Send> sends;
    std::vector<std::pair<std::function<void(Answer)>, Answer>> replies;
    std::vector<Change> changes;
    std::vector<std::function<void(bool)>> inspected;
  };

  // Queues a read; shared by inspect() and inspect_uncommitted().
  PendingRead queue_read(std::function<void(const core::Core&)> read, bool durable);
  void run();
  // Bodies of the two threads.
  void release();
  // Processes one item of a batch.
  void process(Item item);
  // Collects the changes of the writes from index `from` on.
  void collect_changes(std::size_t from);
  // Appends the batch's writes to the store and moves its other effects to the outbox.
  void emit();
  // Raises the durable sequence and wakes the release thread.
  void wake(db::Sequence durable);

  core::Core core_;
  db::Store& store_;
  std::function<core::Now()> clock_;
  Queue<Item> queue_;
  Queue<ReleasedBatch> outbox_;
  Sinks sinks_;
  std::function<void(Error)> failed_;

  // State of the loop thread.
  std::map<core::ReplyTo, std::function<void(Answer)>> waiting_;
  core::ReplyTo next_reply_ = 1;
  db::Sequence appended_ = 0;
  /// Effects of the current batch. A batch is one write group, so a step and its consequences become durable
  /// together.
  core::Effects effects_;
  ReleasedBatch batch_;
  WrittenStates states_;

  /// Highest durable sequence; kBroken after a failure of the store.
  static constexpr db::Sequence kBroken = ~db::Sequence{0};
  std::atomic<db::Sequence> durable_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> steps_{0}, step_micros_{0}, appended_seen_{0};
  std::thread loop_thread_, release_thread_;
};

}  // namespace det::loop
