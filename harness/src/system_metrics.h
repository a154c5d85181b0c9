// Owns what the machine does while it trains: reading /proc and NVML, and the thread that samples and
// reports.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "client.h"

namespace det {

/// One device, at one moment.
struct GpuReading {
  double util = 0;         ///< percent of the last moment in which a kernel ran
  double free_memory = 0;  ///< bytes
};

/// NVIDIA's management library, loaded at run time.
class Nvml {
 public:
  /// Null without library or driver. Devices are those of `visible` (CUDA_VISIBLE_DEVICES: numbers or UUIDs),
  /// in its order; all when it is null.
  static std::unique_ptr<Nvml> load(const char* visible, const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  /// Of each device, in order; nothing for one that does not answer.
  std::vector<std::optional<GpuReading>> read() const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  void find_devices(const char* visible);
  std::unique_ptr<Functions> functions_;
  std::vector<void*> devices_;
};

/// Group → name → value.
using SystemSample = std::map<std::string, std::map<std::string, double>>;

/// Where the kernel says it.
struct SystemFiles {
  std::string proc = "/proc", block = "/sys/block";
  std::string disk = "/";  ///< whose file system disk_util is of
};

/// Reads the machine. Rates are since the call before, so the first call has none; what cannot be read is
/// left out.
class SystemReader {
 public:
  explicit SystemReader(SystemFiles files = {}, std::unique_ptr<Nvml> nvml = nullptr)
      : files_(std::move(files)), nvml_(std::move(nvml)) {}
  SystemSample read(MonoTime now);

 private:
  void read_cpu(SystemSample& out);
  void read_memory(SystemSample& out) const;
  void read_disk(SystemSample& out, double seconds);
  void read_network(SystemSample& out, double seconds);
  void read_gpu(SystemSample& out) const;

  using Counters = std::map<std::string, double>;
  /// `now` less what it was the call before; nothing at the first call or when a counter fell.
  std::optional<Counters> since_last(const std::string& what, const Counters& now);

  SystemFiles files_;
  std::unique_ptr<Nvml> nvml_;
  std::optional<MonoTime> last_time_;
  std::map<std::string, Counters> last_;
};

/// While it lives, samples and reports. Reports are means of the samples, keyed by the second they are made
/// in; none is made while much waits to be sent.
class SystemMetrics {
 public:
  struct Options {
    Duration interval = std::chrono::seconds(1);
    int samples_per_report = 10;
  };
  /// The names of the groups it reports.
  static const std::vector<std::string>& groups();

  /// The client must outlive it. The reader is used on another thread from now on.
  SystemMetrics(Client& client, const Options& options, SystemReader reader);
  /// Of this machine and the devices that CUDA_VISIBLE_DEVICES names.
  SystemMetrics(Client& client, const Options& options);
  ~SystemMetrics();

 private:
  void run(SystemReader reader);
  void report(const std::vector<SystemSample>& samples);
  Client& client_;
  const Options options_;
  std::int64_t last_step_ = 0;
  Queue<bool> stop_{1};
  std::thread thread_;
};

}  // namespace det
