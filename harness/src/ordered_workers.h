// Owns running jobs on several threads with their results in the order in which the jobs were given.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/queue.h"

namespace det {

/// Used by one thread, which gives jobs and takes results; one thread alone runs the jobs one after another.
/// Destroying it waits for the jobs that run and forgets the others.
template <typename Result>
class OrderedWorkers {
 public:
  /// A result, or what the job threw.
  using Outcome = std::variant<Result, std::exception_ptr>;

  /// At most `room` jobs at a time between submit() and take().
  OrderedWorkers(std::int64_t threads, std::int64_t room) : tasks_(room), slots_(room) {
    for (auto& slot : slots_) slot = std::make_unique<Queue<Outcome>>(1);
    for (std::int64_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~OrderedWorkers() {
    stopped_ = true;
    tasks_.close();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWorkers(const OrderedWorkers&) = delete;

  bool has_room() const { return submitted_ - taken_ < slots_.size(); }
  bool idle() const { return submitted_ == taken_; }
  /// While has_room().
  void submit(std::function<Result()> job) {
    (void)tasks_.push({std::move(job), slots_[submitted_++ % slots_.size()].get()});
  }
  /// Whether take() would return at once.
  bool ready() const { return !idle() && slots_[taken_ % slots_.size()]->size() > 0; }
  /// The oldest job's; waits for it. Unless idle().
  Outcome take() { return *slots_[taken_++ % slots_.size()]->pop(); }

 private:
  struct Task {
    std::function<Result()> job;
    Queue<Outcome>* slot = nullptr;
  };
  void work() {
    while (std::optional<Task> task = tasks_.pop()) {
      if (stopped_) continue;
      try {
        (void)task->slot->push(task->job());
      } catch (...) {
        (void)task->slot->push(std::current_exception());
      }
    }
  }

  Queue<Task> tasks_;
  std::vector<std::unique_ptr<Queue<Outcome>>> slots_;  // of job n: n % size
  std::uint64_t submitted_ = 0, taken_ = 0;
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

}  // namespace det
