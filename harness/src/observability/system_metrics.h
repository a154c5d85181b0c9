// Samples machine utilization from /proc and NVML on a thread of its own and reports it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/event.h"
#include "common/gpu/nvml.h"
#include "harness/src/client/client.h"

namespace det {

/// Group → metric name → value.
using SystemSample = std::map<std::string, std::map<std::string, double>>;

/// Paths to read from; tests replace them.
struct SystemFiles {
  std::string proc = "/proc", block = "/sys/block";
  std::string disk = "/";  ///< a path on the file system that disk_util describes
};

/// Reads the utilization of the machine. Used by one thread.
class SystemReader {
 public:
  /// `nvml` reads the GPUs that it has selected; null: none.
  explicit SystemReader(SystemFiles files = {}, std::unique_ptr<Nvml> nvml = nullptr)
      : files_(std::move(files)), nvml_(std::move(nvml)) {}
  /// Takes one sample. Rates cover the time since the previous call, so the first call has none. Sources that
  /// cannot be read are omitted.
  SystemSample read(MonoTime now);

 private:
  void read_cpu(SystemSample& out);
  void read_memory(SystemSample& out) const;
  void read_disk(SystemSample& out, double seconds);
  void read_network(SystemSample& out, double seconds);
  void read_gpu(SystemSample& out) const;

  using Counters = std::map<std::string, double>;
  /// The difference to the previous call for `what`; nullopt at the first call or when a counter decreased.
  std::optional<Counters> since_last(const std::string& what, const Counters& now);

  SystemFiles files_;
  std::unique_ptr<Nvml> nvml_;
  std::optional<MonoTime> last_time_;
  std::map<std::string, Counters> last_;
};

/// Samples and reports during its lifetime, on its own thread. Reports are means of the samples, keyed by the
/// second of the report. Reports are dropped while the client is backlogged.
class SystemMetrics {
 public:
  /// By default a report every 10 s.
  struct Options {
    /// Time between samples.
    Duration interval = std::chrono::seconds(2);
    int samples_per_report = 5;
  };
  /// The names of the metric groups that are reported.
  static const std::vector<std::string>& groups();

  /// `client` must outlive this object.
  SystemMetrics(Client& client, const Options& options, SystemReader reader);
  /// Reads this machine and the GPUs named by CUDA_VISIBLE_DEVICES.
  SystemMetrics(Client& client, const Options& options);
  /// Stops the thread; samples not yet reported are dropped.
  ~SystemMetrics();

 private:
  void run(SystemReader reader);
  void report(const std::vector<SystemSample>& samples);
  Client& client_;
  const Options options_;
  std::int64_t last_step_ = 0;
  Event stop_;
  std::thread thread_;
};

}  // namespace det
