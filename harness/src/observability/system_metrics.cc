#include "harness/src/observability/system_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "common/base/files.h"
#include "common/base/text.h"

namespace det {

namespace {

/// Returns null without driver or library.
std::unique_ptr<Nvml> nvml_of_process() {
  std::unique_ptr<Nvml> nvml = Nvml::load();
  if (nvml) nvml->select(visible_gpus(nvml->gpus(), std::getenv("CUDA_VISIBLE_DEVICES")));
  return nvml;
}

constexpr double kSectorBytes = 512;  // the unit of /proc/diskstats on every disk

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t", at)) != line.npos) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

double number(const std::string& word) {
  double value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// The lines of a file; empty when it cannot be read.
std::vector<std::string> lines_of(const std::string& path) {
  const auto text = read_file(path);
  return text ? split(*text, '\n') : std::vector<std::string>();
}

/// True for loop and memory devices, which are not disks, and for device-mapper and RAID volumes: their
/// traffic is already counted on the disks below.
bool is_layered(const std::string& disk) {
  for (const char* prefix : {"loop", "ram", "zram", "dm-", "md"}) {
    if (disk.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

std::optional<SystemReader::Counters> SystemReader::since_last(const std::string& what, const Counters& now) {
  const auto place = last_.find(what);
  if (place == last_.end()) {
    last_[what] = now;
    return std::nullopt;
  }
  Counters difference;
  // A counter falls when a device was removed or replaced.
  bool fell = false;
  for (const auto& [name, value] : now) {
    difference[name] = value - place->second[name];
    fell = fell || difference[name] < 0;
  }
  place->second = now;
  if (fell) return std::nullopt;
  return difference;
}

void SystemReader::read_cpu(SystemSample& out) {
  // Guest time is part of user time, so only the first eight fields are added.
  for (const std::string& line : lines_of(files_.proc + "/stat")) {
    if (!line.starts_with("cpu ")) continue;
    const auto ticks = words(line);  // cpu user nice system idle iowait irq softirq steal …
    Counters now{{"idle", 0}, {"all", 0}};
    for (std::size_t i = 1; i < std::min<std::size_t>(ticks.size(), 9); ++i) {
      now["all"] += number(ticks[i]);
      if (i == 4 || i == 5) now["idle"] += number(ticks[i]);
    }
    const auto since = since_last("cpu", now);
    if (since && since->at("all") > 0) {
      out["cpu"]["cpu_util_simple"] = 100 * (1 - since->at("idle") / since->at("all"));
    }
    return;
  }
}

void SystemReader::read_memory(SystemSample& out) const {
  for (const std::string& line : lines_of(files_.proc + "/meminfo")) {
    const auto parts = words(line);
    if (parts.size() >= 2 && parts[0] == "MemAvailable:")
      out["memory"]["memory_free"] = number(parts[1]) * 1024;
  }
}

void SystemReader::read_disk(SystemSample& out, double seconds) {
  Counters now{{"operations", 0}, {"read", 0}, {"written", 0}};
  bool found = false;
  for (const std::string& line : lines_of(files_.proc + "/diskstats")) {
    // major minor name reads merged sectors ms writes merged sectors ms …
    const auto parts = words(line);
    // Only whole disks have an entry in /sys/block; partitions would be counted twice.
    if (parts.size() < 11 || is_layered(parts[2]) || !path_exists(files_.block + "/" + parts[2])) continue;
    found = true;
    now["operations"] += number(parts[3]) + number(parts[7]);
    now["read"] += number(parts[5]) * kSectorBytes;
    now["written"] += number(parts[9]) * kSectorBytes;
  }
  if (const auto since = found ? since_last("disk", now) : std::nullopt; since && seconds > 0) {
    out["disk"]["disk_iops"] = since->at("operations") / seconds;
    out["disk"]["disk_throughput_read"] = since->at("read") / seconds;
    out["disk"]["disk_throughput_write"] = since->at("written") / seconds;
  }
  struct statvfs room {};
  if (::statvfs(files_.disk.c_str(), &room) == 0 && room.f_blocks > 0) {
    // Like df: root's reserved blocks count neither as used nor as free.
    const auto used = static_cast<double>(room.f_blocks - room.f_bfree);
    out["disk"]["disk_util"] = 100 * used / std::max(1.0, used + static_cast<double>(room.f_bavail));
  }
}

void SystemReader::read_network(SystemSample& out, double seconds) {
  Counters now{{"received", 0}, {"sent", 0}};
  bool found = false;
  for (const std::string& line : lines_of(files_.proc + "/net/dev")) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos || trim(std::string_view(line).substr(0, colon)) == "lo") continue;
    // Eight fields for received data, then eight for sent; bytes are first.
    const auto parts = words(std::string_view(line).substr(colon + 1));
    if (parts.size() < 16) continue;
    found = true;
    now["received"] += number(parts[0]);
    now["sent"] += number(parts[8]);
  }
  if (const auto since = found ? since_last("network", now) : std::nullopt; since && seconds > 0) {
    out["network"]["net_throughput_sent"] = since->at("sent") / seconds;
    out["network"]["net_throughput_recv"] = since->at("received") / seconds;
  }
}

void SystemReader::read_gpu(SystemSample& out) const {
  if (!nvml_) return;
  const auto readings = nvml_->read();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    const GpuReading& gpu = readings[i];
    if (!gpu.utilization || !gpu.memory_total) continue;
    out["gpu"]["gpu_util." + std::to_string(i)] = *gpu.utilization * 100;
    out["gpu"]["gpu_free_memory." + std::to_string(i)] = *gpu.memory_total - *gpu.memory_used;
    if (gpu.power) out["gpu"]["gpu_power." + std::to_string(i)] = *gpu.power;
    if (gpu.temperature) out["gpu"]["gpu_temperature." + std::to_string(i)] = *gpu.temperature;
  }
}

SystemSample SystemReader::read(MonoTime now) {
  const double seconds = last_time_ ? static_cast<double>((now - *last_time_).count()) * 1e-6 : 0;
  last_time_ = now;
  SystemSample out;
  read_cpu(out);
  read_memory(out);
  read_disk(out, seconds);
  read_network(out, seconds);
  read_gpu(out);
  return out;
}

// ---- the thread

const std::vector<std::string>& SystemMetrics::groups() {
  static const std::vector<std::string> groups{"gpu", "cpu", "memory", "disk", "network"};
  return groups;
}

SystemMetrics::SystemMetrics(Client& client, const Options& options, SystemReader reader)
    : client_(client), options_(options) {
  thread_ = std::thread([this, reader = std::move(reader)]() mutable { run(std::move(reader)); });
}
SystemMetrics::SystemMetrics(Client& client, const Options& options)
    : SystemMetrics(client, options, SystemReader({}, nvml_of_process())) {}

SystemMetrics::~SystemMetrics() {
  stop_.set();
  thread_.join();
}

void SystemMetrics::run(SystemReader reader) {
  (void)reader.read(mono_now());  // the baseline of the rates
  std::vector<SystemSample> samples;
  MonoTime next = mono_now() + options_.interval;
  while (true) {
    if (stop_.wait_for(std::max(next - mono_now(), Duration(0)))) return;
    // After a stall, missed samples are skipped.
    next = std::max(next + options_.interval, mono_now());
    samples.push_back(reader.read(mono_now()));
    if (static_cast<int>(samples.size()) < options_.samples_per_report) continue;
    report(samples);
    samples.clear();
  }
}

void SystemMetrics::report(const std::vector<SystemSample>& samples) {
  const std::int64_t step = std::max(last_step_ + 1, wall_now().micros / 1'000'000);
  // Dropping a report keeps the queue free for training metrics.
  if (client_.backlogged()) return;
  last_step_ = step;
  for (const std::string& group : groups()) {
    std::map<std::string, std::pair<double, int>> sums;
    for (const SystemSample& sample : samples) {
      const auto values = sample.find(group);
      if (values == sample.end()) continue;
      for (const auto& [name, value] : values->second) {
        sums[name].first += value;
        ++sums[name].second;
      }
    }
    Json metrics = Json::object();
    for (const auto& [name, sum] : sums) metrics[name] = sum.first / sum.second;
    if (!metrics.empty()) client_.report_metrics(group, step, metrics);
  }
}

}  // namespace det
