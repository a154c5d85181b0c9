// Simulated time: an event queue ordered by (time, insertion), one random generator for all choices, and the
// trace. The same seed gives the same trace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"

namespace det::sim {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class Engine {
 public:
  Engine(std::uint64_t seed, bool print) : random_{seed, 0}, print_(print) {}

  MonoTime now() const { return now_; }
  /// Seconds since the start, for display.
  double time() const { return static_cast<double>(now_.micros) / 1e6; }
  void after(Duration delay, std::function<void()> event);
  /// Runs events up to `end`, or until `stop` returns true.
  void run_until(MonoTime end, const std::function<bool()>& stop);

  Random& random() { return random_; }
  bool chance(int percent) { return static_cast<int>(random_.below(100)) < percent; }
  std::int64_t between(std::int64_t low, std::int64_t high);  ///< Both inclusive.
  Duration between(Duration low, Duration high) { return Duration(between(low.count(), high.count())); }

  void trace(const std::string& line);
  std::uint64_t trace_hash() const { return hash_; }
  std::uint64_t events() const { return order_; }

 private:
  struct Event {
    MonoTime time;
    std::uint64_t order;
    std::shared_ptr<std::function<void()>> run;
    bool operator<(const Event& other) const {
      return time != other.time ? other.time < time : other.order < order;
    }
  };
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  MonoTime now_;
  Random random_;
  bool print_;
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

/// One direction of a connection: messages arrive in order and late; closing it is silent.
class Pipe {
 public:
  explicit Pipe(Engine& engine) : engine_(&engine) {}
  /// Delivers after everything sent before. One message in fifty takes up to `worst`.
  void send(std::function<void()> deliver, Duration worst = seconds(5));
  /// Drops messages in flight and later ones. Each side detects it by the other's silence.
  void close() { *open_ = false; }
  /// Delays all messages by `duration`, then delivers them.
  void stall(Duration duration);

 private:
  Engine* engine_;
  MonoTime last_;
  std::shared_ptr<bool> open_ = std::make_shared<bool>(true);
};

}  // namespace det::sim
