#include "tests/sim/engine.h"

#include <algorithm>
#include <cstdio>

namespace det::sim {

void Engine::after(Duration delay, std::function<void()> event) {
  events_.push({now_ + std::max(delay, Duration(0)), order_++,
                std::make_shared<std::function<void()>>(std::move(event))});
}

void Engine::run_until(MonoTime end, const std::function<bool()>& stop) {
  while (!events_.empty() && events_.top().time <= end && !stop()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    (*event.run)();
  }
  if (!stop()) now_ = std::max(now_, end);
}

std::int64_t Engine::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low) + 1));
}

void Engine::trace(const std::string& line) {
  auto mix = [this](std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3ull; };
  for (int shift = 0; shift < 64; shift += 8) mix(static_cast<std::uint64_t>(now_.micros) >> shift & 0xFF);
  for (unsigned char c : line) mix(c);
  if (print_) std::printf("%10.3f  %s\n", time(), line.c_str());
}

void Pipe::send(std::function<void()> deliver, Duration worst) {
  const Duration latency = engine_->chance(2) ? engine_->between(Duration(0), worst)
                                              : engine_->between(milliseconds(1), milliseconds(20));
  last_ = std::max(last_, engine_->now() + latency);
  engine_->after(last_ - engine_->now(), [open = open_, deliver = std::move(deliver)] {
    if (*open) deliver();
  });
}

void Pipe::stall(Duration duration) { last_ = std::max(last_, engine_->now() + duration); }

}  // namespace det::sim
