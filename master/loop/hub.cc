// The hub's thread.
#include "master/loop/hub.h"

#include <tuple>

#include "common/base/clock.h"

namespace det::loop {

Hub::Hub(std::size_t kept)
    : kept_(kept), next_event_(static_cast<std::uint64_t>(wall_now().micros)), last_(next_event_ - 1) {
  thread_ = std::thread([this] { run(); });
}

Hub::~Hub() { stop(); }

void Hub::stop() {
  queue_.close();
  if (thread_.joinable()) thread_.join();
}

void Hub::publish(Change change) { queue_.push(std::move(change)); }

Hub::Subscription Hub::subscribe(Listener listener, std::uint64_t after) {
  const Subscription id = next_subscription_.fetch_add(1);
  queue_.push(Subscribe{id, std::move(listener), after});
  return id;
}

void Hub::unsubscribe(Subscription subscription) { queue_.push(Unsubscribe{subscription}); }

void Hub::complete(Change& change) {
  constexpr std::size_t kMaxTasks = 100'000;
  if (change.task.value.empty()) return;
  if (change.trial.value != 0) {
    // A lost entry costs only the experiment and trial ids of some log events.
    if (tasks_.size() >= kMaxTasks) tasks_.clear();
    tasks_[change.task] = {change.experiment, change.trial};
  } else if (auto it = tasks_.find(change.task); it != tasks_.end()) {
    std::tie(change.experiment, change.trial) = it->second;
  }
}

void Hub::run() {
  while (auto item = queue_.pop()) {
    if (auto* change = std::get_if<Change>(&*item)) {
      complete(*change);
      auto event = std::make_shared<const Event>(Event{next_event_++, std::move(*change)});
      last_.store(event->id, std::memory_order_release);
      ring_.push_back(event);
      if (ring_.size() > kept_) ring_.pop_front();
      for (auto& [id, listener] : listeners_) listener(event);
    } else if (auto* subscribe = std::get_if<Subscribe>(&*item)) {
      if (subscribe->after != 0) {
        // Events between `after` and the oldest kept one are lost: a null event makes the subscriber
        // reload.
        const std::uint64_t first = ring_.empty() ? next_event_ : ring_.front()->id;
        if (subscribe->after + 1 < first) subscribe->listener(nullptr);
        for (const auto& event : ring_) {
          if (event->id > subscribe->after) subscribe->listener(event);
        }
      }
      listeners_.emplace(subscribe->id, std::move(subscribe->listener));
    } else {
      listeners_.erase(std::get<Unsubscribe>(*item).id);
    }
  }
  listeners_.clear();
}

}  // namespace det::loop
