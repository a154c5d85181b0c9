// System metrics are read from /proc and reported as means, off the training thread.
#include "harness/src/observability/system_metrics.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/event.h"
#include "common/base/files.h"
#include "common/base/queue.h"

namespace det {
namespace {

/// A fake /proc and /sys/block.
class Machine {
 public:
  Machine() {
    for (const char* directory :
         {"/proc/net", "/block/sda", "/block/nvme0n1", "/block/loop0", "/block/dm-0"}) {
      REQUIRE(make_directories(root_.path() + directory));
    }
  }
  void write(const std::string& path, const std::string& text) {
    REQUIRE(write_file_atomic(root_.path() + path, text));
  }
  SystemFiles files() const { return {root_.path() + "/proc", root_.path() + "/block", root_.path()}; }

 private:
  TemporaryDirectory root_ = TemporaryDirectory::create().value();
};

std::string diskstats(int sda, int nvme, int others) {
  const auto line = [](const char* name, int n) {
    const auto number = [](int value) { return " " + std::to_string(value); };
    // reads merged sectors ms writes merged sectors ms now ms weighted
    return std::string("   8       0 ") + name + number(n) + " 0" + number(8 * n) + " 5" + number(2 * n) +
           " 0" + number(4 * n) + " 6 0 7 8\n";
  };
  return line("sda", sda) + line("sda1", others) + line("nvme0n1", nvme) + line("loop0", others) +
         line("dm-0", others);
}

TEST_CASE("processor utilization is measured between two readings") {
  Machine machine;
  SystemReader reader(machine.files());
  machine.write("/proc/stat", "cpu  100 0 100 800 0 0 0 0 50 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 5\n");
  CHECK(reader.read({0}).count("cpu") == 0);
  // 100 more ticks: 20 idle and 5 waiting for a disk.
  machine.write("/proc/stat", "cpu  140 10 115 820 5 2 3 5 99 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 5\n");
  CHECK(reader.read({1'000'000}).at("cpu").at("cpu_util_simple") == Approx(75));
  // No tick in between.
  CHECK(reader.read({2'000'000}).count("cpu") == 0);
}

TEST_CASE("free memory is the memory available to programs, in bytes") {
  Machine machine;
  machine.write("/proc/meminfo",
                "MemTotal:       24000000 kB\nMemFree:  1 kB\nMemAvailable:    2000000 kB\n");
  SystemReader reader(machine.files());
  CHECK(reader.read({0}).at("memory").at("memory_free") == 2000000.0 * 1024);
}

TEST_CASE("disk rates count each whole disk once, per second") {
  Machine machine;
  SystemReader reader(machine.files());
  machine.write("/proc/diskstats", diskstats(100, 10, 1000));
  const SystemSample first = reader.read({0});
  CHECK(first.at("disk").count("disk_iops") == 0);
  CHECK(first.at("disk").at("disk_util") > 0);
  CHECK(first.at("disk").at("disk_util") <= 100);
  machine.write("/proc/diskstats", diskstats(110, 30, 9000));
  const auto disk = reader.read({2'000'000}).at("disk");
  CHECK(disk.at("disk_iops") == Approx(30 * 3 / 2.0));
  CHECK(disk.at("disk_throughput_read") == Approx(30 * 8 * 512 / 2.0));
  CHECK(disk.at("disk_throughput_write") == Approx(30 * 4 * 512 / 2.0));
}

TEST_CASE("network rates exclude the loopback, and a reset counter leaves a gap") {
  Machine machine;
  SystemReader reader(machine.files());
  const auto devices = [](const std::string& received, const std::string& sent) {
    return "Inter-|   Receive                                                |  Transmit\n"
           " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop "
           "fifo colls "
           "carrier\n"
           "    lo: 999999 1 0 0 0 0 0 0 999999 1 0 0 0 0 0 0\n"
           "  eth0:" +
           received + " 1 0 0 0 0 0 0 " + sent + " 1 0 0 0 0 0 0\n";
  };
  machine.write("/proc/net/dev", devices("1000", "500"));
  CHECK(reader.read({0}).count("network") == 0);
  machine.write("/proc/net/dev", devices("5000", "700"));
  const auto network = reader.read({4'000'000}).at("network");
  CHECK(network.at("net_throughput_recv") == Approx(1000));
  CHECK(network.at("net_throughput_sent") == Approx(50));
  machine.write("/proc/net/dev", devices("10", "10"));
  CHECK(reader.read({5'000'000}).count("network") == 0);
}

TEST_CASE("missing files are skipped") {
  SystemReader reader({"/nowhere", "/nowhere", "/nowhere"});
  CHECK(reader.read({0}).empty());
  CHECK(reader.read({1'000'000}).empty());
}

TEST_CASE("the metrics of this machine can be read") {
  SystemReader reader;
  (void)reader.read({0});
  const SystemSample sample = reader.read({1'000'000});
  CHECK(sample.at("memory").at("memory_free") > 0);
  CHECK(sample.at("disk").at("disk_util") > 0);
}

TEST_CASE("devices have the process's numbering, and failing ones are skipped") {
  CHECK(Nvml::load("libno-such-library.so") == nullptr);
  const auto gpus = [](const char* visible) {
    auto nvml = Nvml::load(DET_FAKE_NVML);
    REQUIRE(nvml);
    nvml->select(visible_gpus(nvml->gpus(), visible));
    SystemReader reader({"/nowhere", "/nowhere", "/nowhere"}, std::move(nvml));
    const SystemSample sample = reader.read({0});
    return sample.empty() ? std::map<std::string, double>() : sample.at("gpu");
  };
  const auto readings = [](const std::string& index) {
    return std::map<std::string, double>{{"gpu_util." + index, 40},
                                         {"gpu_free_memory." + index, 600},
                                         {"gpu_power." + index, 250.5},
                                         {"gpu_temperature." + index, 61}};
  };
  const auto first = readings("0"), second = readings("1");
  CHECK(gpus(nullptr) == first);
  CHECK(gpus("0") == first);
  CHECK(gpus("1, 0") == second);
  CHECK(gpus("GPU-277,GPU-077") == second);
  CHECK(gpus("GPU-0") == first);
  CHECK(gpus("").empty());
  CHECK(gpus("9,0").empty());
}

struct Row {
  std::string group;
  std::int64_t step;
  Json metrics;
};

class Recorder final : public Client {
 public:
  void report_metrics(const std::string& group, std::int64_t step, const Json& metrics) override {
    (void)rows.push({group, step, metrics});
  }
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const CheckpointRecord&) override {}
  void report_invalid_hp() override {}
  bool should_preempt() const override { return false; }
  bool backlogged() const override {
    if (full && ++refused == 5) refused_five_times.set();
    return full;
  }
  void acknowledge_preemption() override {}
  bool flush(std::chrono::seconds) override { return true; }
  Queue<Row> rows{100'000};
  std::atomic<bool> full{false};
  mutable std::atomic<int> refused{0};
  mutable Event refused_five_times;
};

TEST_CASE("the thread reports means with an increasing step until it is stopped") {
  Machine machine;
  machine.write("/proc/meminfo", "MemAvailable: 10 kB\n");
  Recorder client;
  std::vector<Row> rows;
  {
    SystemMetrics metrics(client, {.interval = Duration(200), .samples_per_report = 3},
                          SystemReader(machine.files()));
    while (rows.size() < 12) {
      auto row = client.rows.pop();
      REQUIRE(row);
      rows.push_back(std::move(*row));
    }
  }
  const std::size_t left = client.rows.size();
  CHECK(client.rows.size() == left);
  std::int64_t last = 1'600'000'000;
  for (const Row& row : rows) {
    if (row.group != "memory") continue;
    CHECK(row.metrics == Json{{"memory_free", 10240}});
    CHECK(row.step > last);
    last = row.step;
  }
  CHECK(last > 1'600'000'000);
}

TEST_CASE("no metrics are reported while the send queue is long") {
  Machine machine;
  machine.write("/proc/meminfo", "MemAvailable: 10 kB\n");
  Recorder client;
  client.full = true;
  {
    SystemMetrics metrics(client, {.interval = Duration(100), .samples_per_report = 1},
                          SystemReader(machine.files()));
    CHECK(client.refused_five_times.wait_for(std::chrono::seconds(20)));
  }
  CHECK(client.rows.size() == 0);
}

}  // namespace
}  // namespace det
