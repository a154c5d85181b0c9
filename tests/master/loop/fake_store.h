// A store with groups that become durable only when the test calls make_durable().
#pragma once

#include <atomic>

#include "common/base/queue.h"
#include "master/db/store/store.h"

namespace det::test {

class FakeStore : public db::Store {
 public:
  Result<core::Recovered> load() override { return core::Recovered{}; }
  db::Sequence append(std::vector<core::Write> group) override {
    groups_.push(std::move(group));
    const db::Sequence sequence = ++appended_;
    if (durable_at_once) callbacks_.durable(sequence);
    return sequence;
  }
  void start(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  void stop() override {
    if (durable_on_stop) callbacks_.durable(appended_);
  }

  void make_durable(db::Sequence sequence) { callbacks_.durable(sequence); }
  void break_down() { callbacks_.failed(Error{Code::kUnavailable, "disk on fire", {}}); }
  db::Sequence appended() const { return appended_; }
  std::vector<std::vector<core::Write>> groups() { return groups_.pop_batch(1000, std::chrono::seconds(0)); }

  bool durable_on_stop = true;
  bool durable_at_once = false;

 private:
  std::atomic<db::Sequence> appended_{0};
  Queue<std::vector<core::Write>> groups_{10000};
  Callbacks callbacks_;
};

inline core::Now test_now() { return {mono_now(), wall_now()}; }

inline core::Core empty_core(const core::Options& options = {}) {
  return *core::Core::restore(options, {}, test_now());
}

}  // namespace det::test
