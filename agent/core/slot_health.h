// Health of the devices behind the slots of an agent. A slot with a fault is out of service until a check of
// its device has passed. Pure and single-threaded, like the core that owns it.
//
//   state        input                       next state
//   in service   DeviceFault                 out
//   in service   CheckRequest, slot is idle  out, checking
//   out          check is due, slot is idle  checking, unless a condition of the device lasts
//   checking     CheckDone, passed           in service; out after a fault during the check
//   checking     CheckDone, failed           out; the next check is due after twice the time
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace det::agent {

/// A device reported an error. The first fault is the reason until the slot is in service again.
struct DeviceFault {
  int slot = 0;
  std::string reason;
};
/// A state of a device in which it must not be used, such as a pending reset. Also a fault. No check runs
/// while it lasts.
struct DeviceCondition {
  int slot = 0;
  std::string reason;  ///< "": it has ended
};
/// From the master: check the device now. A healthy slot is out of service during the check; one with an
/// allocation is not checked.
struct CheckRequest {
  int slot = 0;
  std::int64_t number = 0;  ///< counts the requests of a connection
};
/// The answer to RunCheck.
struct CheckDone {
  int slot = 0;
  std::string failure;  ///< "": the check has passed
};

class SlotHealth {
 public:
  /// Time from a fault to the first check, and the maximum after failed ones.
  static constexpr Duration kFirstCheck = std::chrono::minutes(1), kMaxDelay = std::chrono::hours(1);

  /// Why slots are out of service, by slot id.
  const std::map<int, std::string>& problems() const { return problems_; }
  /// The same without the failures of checks. A later agent process takes them as faults.
  std::map<int, std::string> reasons() const;

  // Inputs. Each returns true if the master expects a report of problems().
  bool handle(const DeviceFault& input, MonoTime now);
  bool handle(const DeviceCondition& input, MonoTime now);
  /// `busy`: an allocation has the slot.
  bool handle(const CheckRequest& input, MonoTime now, bool busy);
  bool handle(const CheckDone& input, MonoTime now);

  /// Begins the checks that are due on slots that are not `busy`. Returns their slots.
  std::vector<int> begin_checks(MonoTime now, const std::set<int>& busy);
  /// Returns when the next check is due; nothing if an input must come first.
  std::optional<MonoTime> next_check(const std::set<int>& busy) const;

 private:
  /// A slot that is out of service.
  struct Out {
    std::string reason;
    std::string failure;    ///< of the last check
    std::string condition;  ///< as in DeviceCondition
    bool checking = false;
    bool again = false;  ///< a fault came during the check, which therefore proves nothing
    MonoTime check_at;
    Duration delay = kFirstCheck;
  };
  /// Takes the slot out of service, or postpones its check.
  Out& take_out(int slot, const std::string& reason, MonoTime now);
  /// Updates problems_. Returns true after a change.
  bool describe(int slot);

  std::map<int, Out> out_;
  std::map<int, std::string> problems_;
};

}  // namespace det::agent
