#include "agent/gpu/gpu_monitor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/gpu/faults.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

// The wait for an event is bounded by it, and thereby the end of the thread.
constexpr Duration kEventWait = 1s;
constexpr Duration kCheckTimeout = 2min;
constexpr Duration kStopDelay = 200ms;   // until a check ends after a stop
constexpr std::size_t kMaxReason = 300;  // bytes
constexpr std::int64_t kMaxOutput = 1 << 20;

/// Runs the check on a device, with its output in the file `log`. Returns "" if it has passed, else the
/// reason, and nothing after a stop.
std::optional<std::string> run_check(const std::vector<std::string>& argv, const Device& device,
                                     const std::string& log, const std::stop_token& stop) {
  (void)remove_tree(log);
  auto child = Child::spawn({.argv = argv,
                             .env = environment_with({"CUDA_VISIBLE_DEVICES=" + device.uuid}),
                             .out = Stream::file(log),
                             .err = Stream::file(log)});
  if (!child) return child.error().message;
  std::optional<ExitStatus> status;
  for (const MonoTime deadline = mono_now() + kCheckTimeout; !status && mono_now() < deadline;) {
    if (stop.stop_requested()) return std::nullopt;
    status = child->wait(kStopDelay);
  }
  if (!status) return "it has not ended within 2 min";
  if (status->ok()) return "";
  std::string reason = to_string(*status);
  if (const auto text = read_file(log, kMaxOutput)) {
    for (const std::string& line : split(*text, '\n'))
      if (!trim(line).empty()) reason = trim(line);
  }
  return make_utf8(reason.substr(0, kMaxReason));
}

}  // namespace

GpuMonitor::GpuMonitor(std::vector<Device> devices, std::string file, std::vector<std::string> check,
                       Sinks sinks)
    : devices_(std::move(devices)),
      file_(std::move(file)),
      check_(std::move(check)),
      sinks_(std::move(sinks)),
      rules_(devices_.size()),
      conditions_(devices_.size()) {
  if (devices_.empty() || devices_[0].type != "CUDA") return;
  std::vector<std::string> uuids;
  for (const Device& device : devices_) uuids.push_back(device.uuid);
  std::shared_ptr<Nvml> nvml = Nvml::load();
  if (!nvml) return;
  nvml->select(uuids);
  if (!nvml->watch())
    log::warn("the driver reports no errors of GPUs as events; their readings are watched only");
  thread_ = std::thread([this, nvml] { run(*nvml); });
}

GpuMonitor::~GpuMonitor() {
  stop_.set();
  if (active()) thread_.join();
}

void GpuMonitor::run(const Nvml& nvml) {
  MonoTime next = mono_now();
  std::vector<std::shared_ptr<Event>> settling;
  while (!stop_.is_set()) {
    const MonoTime now = mono_now();
    const std::size_t before = settling.size();
    for (auto& one : settling_.pop_batch(kMaxSettling, Duration(0))) settling.push_back(std::move(one));
    if (now >= next || settling.size() > before) {
      next = now + kInterval;
      take_readings(nvml);
    }
    const auto event = nvml.wait(kEventWait);
    if (!event) {
      // An error ends the wait early, and would be repeated at once.
      (void)stop_.wait_for(std::max(now + kEventWait - mono_now(), Duration(0)));
      for (const auto& one : settling) one->set();
      settling.clear();
      continue;
    }
    const auto fault = event->xid ? fault_of_xid(*event->xid) : std::optional<std::string>(kMemoryError);
    for (const std::size_t gpu : event->gpus) {
      const int slot = static_cast<int>(gpu);
      log::warn("error of a GPU", {{"slot", slot},
                                   {"uuid", devices_[gpu].uuid},
                                   {"xid", event->xid ? std::to_string(*event->xid) : "none"},
                                   {"cause", fault ? "the device" : "a program"}});
      if (fault) sinks_.fault({slot, *fault});
    }
  }
}

void GpuMonitor::settle() {
  if (!active()) return;
  const auto settled = std::make_shared<Event>();
  if (settling_.try_push(std::shared_ptr<Event>(settled))) (void)settled->wait_for(kMaxSettle);
}

void GpuMonitor::take_readings(const Nvml& nvml) {
  std::vector<GpuReading> readings = nvml.read();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const int slot = static_cast<int>(i);
    GpuRules::Finding found = rules_[i].judge(readings[i]);
    if (!found.fault.empty()) sinks_.fault({slot, std::move(found.fault)});
    if (found.condition == conditions_[i]) continue;
    conditions_[i] = found.condition;
    sinks_.condition({slot, std::move(found.condition)});
  }
  sinks_.readings(std::move(readings));
}

void GpuMonitor::check(int slot) {
  const Device& device = devices_[static_cast<std::size_t>(slot)];
  log::info("checking a device", {{"slot", slot}, {"uuid", device.uuid}});
  // Assignment waits for the earlier check of the slot, which has delivered its result.
  checks_[slot] = std::jthread([this, slot, device](const std::stop_token& stop) {
    auto failure = run_check(check_, device, file_ + ".check-" + std::to_string(slot), stop);
    if (!failure) return;
    if (failure->empty()) {
      log::info("the device is good", {{"slot", slot}, {"uuid", device.uuid}});
    } else {
      log::error("the check of a device failed",
                 {{"slot", slot}, {"uuid", device.uuid}, {"reason", *failure}});
    }
    sinks_.checked({slot, std::move(*failure)});
  });
}

void GpuMonitor::store(const std::map<int, std::string>& reasons) const {
  Json faults = Json::object();
  for (const auto& [slot, reason] : reasons) faults[devices_[static_cast<std::size_t>(slot)].uuid] = reason;
  if (auto written = write_file_atomic(file_, dump_json(faults)); !written)
    log::warn("faults of devices not stored", {{"reason", written.error().message}});
}

std::vector<DeviceFault> GpuMonitor::stored() const {
  std::vector<DeviceFault> faults;
  const auto text = active() ? read_file(file_) : Result<std::string>("{}");
  const auto json = text ? parse_json(*text) : Result<Json>(Json::object());
  if (!json || !json->is_object()) return faults;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto found = json->find(devices_[i].uuid);
    if (found != json->end() && found->is_string())
      faults.push_back({static_cast<int>(i), found->get<std::string>()});
  }
  return faults;
}

}  // namespace det::agent
