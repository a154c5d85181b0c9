// Watches the CUDA devices of the slots on a thread of its own: errors, states and readings. Runs the checks
// that precede the return of a slot to service, and stores faults for a later agent process.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/core/slot_health.h"
#include "agent/detect.h"
#include "agent/gpu/faults.h"
#include "common/base/event.h"
#include "common/base/queue.h"
#include "common/gpu/nvml.h"

namespace det::agent {

class GpuMonitor {
 public:
  /// Time between two readings.
  static constexpr Duration kInterval = std::chrono::seconds(10);
  /// A driver without a reply delays exits by no more.
  static constexpr Duration kMaxSettle = std::chrono::seconds(5);

  /// Called on threads of the monitor.
  struct Sinks {
    std::function<void(DeviceFault)> fault;
    std::function<void(DeviceCondition)> condition;
    std::function<void(CheckDone)> checked;
    std::function<void(std::vector<GpuReading>)> readings;  ///< by slot id
  };
  /// `file`: where faults are stored. `check`: argument vector of the check. It gets the device in
  /// CUDA_VISIBLE_DEVICES, exits with 0 if the device is good, and prints what is wrong with it as its last
  /// line.
  GpuMonitor(std::vector<Device> devices, std::string file, std::vector<std::string> check, Sinks sinks);
  /// Ends the thread and the checks.
  ~GpuMonitor();

  /// Whether the slots are CUDA devices that can be watched.
  bool active() const { return thread_.joinable(); }
  /// Returns when the errors and states of the devices until now have been delivered: after a quiet second
  /// and a reading, at most kMaxSettle. Thread-safe.
  void settle();
  /// Begins the check of a slot; `checked` gets its result.
  void check(int slot);
  /// Stores the reasons of slots out of service, durably.
  void store(const std::map<int, std::string>& reasons) const;
  /// Returns the stored faults of the present devices.
  std::vector<DeviceFault> stored() const;

 private:
  static constexpr std::size_t kMaxSettling = 1000;

  void run(const Nvml& nvml);
  void take_readings(const Nvml& nvml);

  const std::vector<Device> devices_;
  const std::string file_;
  const std::vector<std::string> check_;
  const Sinks sinks_;
  // The thread's, by slot: rules, and the condition that was reported last.
  std::vector<GpuRules> rules_;
  std::vector<std::string> conditions_;
  Event stop_;
  Queue<std::shared_ptr<Event>> settling_{kMaxSettling};  ///< calls of settle() that wait
  std::map<int, std::jthread> checks_;                    ///< by slot
  std::thread thread_;
};

}  // namespace det::agent
