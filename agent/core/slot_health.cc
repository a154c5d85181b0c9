#include "agent/core/slot_health.h"

#include <algorithm>
#include <utility>

namespace det::agent {

SlotHealth::Out& SlotHealth::take_out(int slot, const std::string& reason, MonoTime now) {
  const auto [place, is_new] = out_.try_emplace(slot);
  Out& out = place->second;
  if (is_new) out.reason = reason;
  out.again = out.checking;
  out.check_at = now + out.delay;
  return out;
}

bool SlotHealth::describe(int slot) {
  const auto found = out_.find(slot);
  if (found == out_.end()) return problems_.erase(slot) > 0;
  const Out& out = found->second;
  std::string text = out.reason;
  // A check that the master asked for has no other reason.
  if (!out.failure.empty())
    text += (text.empty() ? "the check failed: " : "; the check failed: ") + out.failure;
  if (text.empty()) text = "its device is being checked";
  std::string& problem = problems_[slot];
  if (problem == text) return false;
  problem = std::move(text);
  return true;
}

std::map<int, std::string> SlotHealth::reasons() const {
  std::map<int, std::string> reasons;
  for (const auto& [slot, problem] : problems_) {
    const std::string& reason = out_.at(slot).reason;
    reasons[slot] = reason.empty() ? problem : reason;
  }
  return reasons;
}

bool SlotHealth::handle(const DeviceFault& input, MonoTime now) {
  Out& out = take_out(input.slot, input.reason, now);
  if (out.reason.empty()) out.reason = input.reason;
  return describe(input.slot);
}

bool SlotHealth::handle(const DeviceCondition& input, MonoTime now) {
  if (input.reason.empty()) {
    const auto known = out_.find(input.slot);
    if (known == out_.end() || known->second.condition.empty()) return false;
    known->second.condition.clear();
    known->second.check_at = now + known->second.delay;
    return false;
  }
  Out& out = take_out(input.slot, input.reason, now);
  if (out.reason.empty()) out.reason = input.reason;
  out.condition = input.reason;
  return describe(input.slot);
}

bool SlotHealth::handle(const CheckRequest& input, MonoTime now, bool busy) {
  const bool healthy = !out_.contains(input.slot);
  if (healthy && busy) return true;
  Out& out = out_[input.slot];
  out.check_at = now;
  out.delay = kFirstCheck;
  describe(input.slot);
  return true;
}

bool SlotHealth::handle(const CheckDone& input, MonoTime now) {
  const auto known = out_.find(input.slot);
  if (known == out_.end() || !known->second.checking) return false;
  Out& out = known->second;
  out.checking = false;
  const bool again = std::exchange(out.again, false);
  if (!input.failure.empty()) {
    out.failure = input.failure;
    out.delay = std::min(out.delay * 2, kMaxDelay);
  } else if (!again && out.condition.empty()) {
    out_.erase(known);
    return describe(input.slot);
  }
  out.check_at = now + out.delay;
  return describe(input.slot);
}

std::vector<int> SlotHealth::begin_checks(MonoTime now, const std::set<int>& busy) {
  std::vector<int> begun;
  for (auto& [slot, out] : out_) {
    if (out.checking || !out.condition.empty() || busy.contains(slot) || now < out.check_at) continue;
    out.checking = true;
    begun.push_back(slot);
  }
  return begun;
}

std::optional<MonoTime> SlotHealth::next_check(const std::set<int>& busy) const {
  std::optional<MonoTime> next;
  for (const auto& [slot, out] : out_) {
    if (out.checking || !out.condition.empty() || busy.contains(slot)) continue;
    next = next ? std::min(*next, out.check_at) : out.check_at;
  }
  return next;
}

}  // namespace det::agent
