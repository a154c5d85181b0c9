#include "harness/src/observability/system_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "common/base/files.h"
#include "common/base/shared_library.h"
#include "common/base/text.h"

namespace det {

// ---- NVML: its stable C interface (docs.nvidia.com/deploy/nvml-api), declared here; no header is needed

struct Nvml::Functions {
  using Device = void*;
  struct Utilization {
    unsigned gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
};

std::unique_ptr<Nvml> Nvml::load(const char* visible, const char* library) {
  auto f = std::make_unique<Functions>();
  auto found = SharedLibrary::open(library);
  if (!found) return nullptr;
  found->find(f->init, "nvmlInit_v2")
      .find(f->shutdown, "nvmlShutdown")
      .find(f->count, "nvmlDeviceGetCount_v2")
      .find(f->by_index, "nvmlDeviceGetHandleByIndex_v2")
      .find(f->uuid, "nvmlDeviceGetUUID")
      .find(f->utilization, "nvmlDeviceGetUtilizationRates")
      .find(f->memory, "nvmlDeviceGetMemoryInfo");
  if (!found->complete() || f->init() != 0) return nullptr;
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(f)));
  nvml->find_devices(visible);
  return nvml;
}

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Nvml::~Nvml() { functions_->shutdown(); }

void Nvml::find_devices(const char* visible) {
  unsigned count = 0;
  if (functions_->count(&count) != 0) return;
  std::vector<std::pair<std::string, void*>> all;  // UUID and handle; null when the device does not respond
  for (unsigned i = 0; i < count; ++i) {
    void* device = nullptr;
    char uuid[96] = {};
    const bool answers =
        functions_->by_index(i, &device) == 0 && functions_->uuid(device, uuid, sizeof uuid - 1) == 0;
    all.emplace_back(uuid, answers ? device : nullptr);
    if (visible == nullptr) devices_.push_back(all.back().second);
  }
  if (visible == nullptr) return;
  for (const std::string& piece : split(visible, ',')) {
    const std::string_view name = trim(piece);
    std::size_t index = all.size();
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool number = error == std::errc() && end == name.data() + name.size();
    void* device = nullptr;
    bool found = number && index < all.size();
    if (found) device = all[index].second;
    // CUDA accepts an abbreviated UUID.
    for (const auto& [uuid, handle] : all) {
      if (number || found || name.empty() || !uuid.starts_with(name)) continue;
      device = handle;
      found = true;
    }
    if (!found) return;  // CUDA ignores the rest after an unknown name, too
    devices_.push_back(device);
  }
}

std::vector<std::optional<GpuReading>> Nvml::read() const {
  std::vector<std::optional<GpuReading>> out;
  for (void* device : devices_) {
    Functions::Utilization utilization{};
    Functions::Memory memory{};
    auto& reading = out.emplace_back();
    if (device != nullptr && functions_->utilization(device, &utilization) == 0 &&
        functions_->memory(device, &memory) == 0) {
      reading = GpuReading{static_cast<double>(utilization.gpu), static_cast<double>(memory.free)};
    }
  }
  return out;
}

// ---- /proc

namespace {

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
    if (!readings[i]) continue;
    out["gpu"]["gpu_util." + std::to_string(i)] = readings[i]->util;
    out["gpu"]["gpu_free_memory." + std::to_string(i)] = readings[i]->free_memory;
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
    : SystemMetrics(client, options, SystemReader({}, Nvml::load(std::getenv("CUDA_VISIBLE_DEVICES")))) {}

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
