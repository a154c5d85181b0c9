// Threads of Workers.
#include "master/loop/workers.h"

#include <algorithm>

namespace det::loop {

Workers::Workers(int threads, std::size_t capacity, const Job& tick, Duration period) : queue_(capacity) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, tick, period] { tick ? run_ticking(tick, period) : run(); });
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  queue_.close();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Workers::run() {
  while (auto job = queue_.pop()) (*job)();
}

void Workers::run_ticking(const Job& tick, Duration period) {
  MonoTime next = mono_now() + period;
  for (;;) {
    const Duration wait = std::max(next - mono_now(), Duration(0));
    std::vector<Job> jobs = queue_.pop_batch(256, wait);
    if (jobs.empty() && queue_.closed()) return;
    for (Job& job : jobs) job();
    // Checked after the jobs: a full queue delays the tick by at most one batch.
    if (mono_now() >= next) {
      tick();
      next = mono_now() + period;
    }
  }
}

}  // namespace det::loop
