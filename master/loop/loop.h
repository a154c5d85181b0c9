// Owns the one thread on which the core lives, and the rule "nothing is said before it is durable": sends,
// replies and changes of a step wait in the outbox until the store reports the step's writes durable. Decides
// nothing itself.
//
//   submit/call/inspect → queue → [loop thread: step, append] → outbox → [release thread: waits for durable]
//   → sinks
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <thread>
#include <variant>
#include <vector>

#include "base/queue.h"
#include "base/result.h"
#include "master/core/core.h"
#include "master/db/store.h"
#include "master/loop/change.h"

namespace det::loop {

using Answer = Result<core::ReplyValue>;

/// Where released effects go. Called on the release thread, one at a time, in the order of the steps; they
/// must be quick and must never wait for the loop (call submit, ask or inspect from another thread).
struct Sinks {
  std::function<void(core::Send)> send;
  std::function<void(const Change&)> changed;
};

/// A question to the core that is under way.
class Look {
 public:
  /// False when it was not answered in time or the loop has stopped.
  bool wait(Duration timeout = std::chrono::seconds(30)) const {
    return seen_.valid() && seen_.wait_for(timeout) == std::future_status::ready;
  }

 private:
  friend class Loop;
  std::future<void> seen_;  ///< none: it was not taken
};

class Loop {
 public:
  /// `clock` gives the time of each step.
  Loop(core::Core core, db::Store& store, std::function<core::Now()> clock, std::size_t capacity = 8192);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Sinks must outlive the loop. `failed` is called once, from any thread, when the store can no longer
  /// write: nothing is released any more, and the process must exit.
  void start(Sinks sinks, std::function<void(Error)> failed);
  /// Takes no more inputs, finishes what is queued, waits until it is durable and released. Callers still
  /// waiting after a store failure are answered kUnavailable. Stops the store's writer. Idempotent.
  void stop();

  /// Waits while the queue is full. False after stop().
  bool submit(core::Input input);
  /// Gives the input's reply to `answer` on the release thread, or kUnavailable when the loop has stopped.
  void call(core::Input input, std::function<void(Answer)> answer);
  /// `call`, waiting for the answer at most `timeout` (then kDeadlineExceeded: it may still happen). Never
  /// from a sink.
  Answer ask(core::Input input, Duration timeout = std::chrono::seconds(30));
  /// Runs `read` on the loop thread and waits for it and for all it may have seen to be durable. False when
  /// it did not run in time or the loop has stopped; `read` must then not matter any more (own its state by
  /// shared_ptr).
  bool inspect(std::function<void(const core::Core&)> read, Duration timeout = std::chrono::seconds(30));
  /// `inspect` that waits for no write: what `read` saw may not be durable yet, and may so be untrue after a
  /// restart. For what is asked of the cluster on the way to an input, which the core judges again; never for
  /// what is shown. Asked at once; something else can be done until it is waited for.
  Look glance(std::function<void(const core::Core&)> read);

  /// Since the start; from any thread.
  struct Stats {
    std::uint64_t steps = 0;
    double step_seconds = 0;      ///< all of them together
    std::size_t queued = 0;       ///< inputs that wait for the core
    std::uint64_t undurable = 0;  ///< groups of writes that are not durable yet
  };
  Stats stats() const;

 private:
  struct Call {
    core::Input input;
    std::function<void(Answer)> answer;
  };
  struct Inspection {
    std::function<void(const core::Core&)> read;
    std::function<void()> released;
    bool durable = true;  ///< released once what was seen is
  };
  using Item = std::variant<Call, Inspection>;
  struct Parcel {
    db::Sequence after = 0;
    std::vector<core::Send> sends;
    std::vector<std::pair<std::function<void(Answer)>, Answer>> replies;
    std::vector<Change> changes;
    std::vector<std::function<void()>> inspected;
  };

  Look look(std::function<void(const core::Core&)> read, bool durable);
  void run();
  void release();
  void take(Item item);
  void tell_changes(std::size_t from);
  void emit();
  void wake(db::Sequence durable);

  core::Core core_;
  db::Store& store_;
  std::function<core::Now()> clock_;
  Queue<Item> queue_;
  Queue<Parcel> outbox_;
  Sinks sinks_;
  std::function<void(Error)> failed_;

  // The loop thread's own.
  std::map<core::ReplyTo, std::function<void(Answer)>> waiting_;
  core::ReplyTo next_reply_ = 1;
  db::Sequence appended_ = 0;
  /// Of the batch in hand: it is one write group, so what a step leads to is durable with the step.
  core::Effects effects_;
  Parcel parcel_;

  /// Highest durable sequence; kBroken once the store has failed.
  static constexpr db::Sequence kBroken = ~db::Sequence{0};
  std::atomic<db::Sequence> durable_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> steps_{0}, step_micros_{0}, appended_seen_{0};
  std::thread loop_thread_, release_thread_;
};

}  // namespace det::loop
