// Clients without a master: one prints reports, the other discards them.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "common/base/files.h"
#include "common/base/shared.h"
#include "common/metrics/throughput.h"
#include "harness/src/client/client.h"

namespace det {
namespace {

/// Interval between lines of progress.
constexpr Duration kProgressInterval = std::chrono::seconds(10);

constexpr std::size_t kPrintedPaths = 1000;

/// Set by the signal handler: 1 requests preemption.
volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

std::string to_text(const Json& value) {
  if (!value.is_number_float()) return value.is_string() ? value.get<std::string>() : value.dump();
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value.get<double>());
  return text;
}

/// Installs signal handlers: the first interrupt sets a flag, the second one kills the process.
class Interrupts {
 public:
  Interrupts() {
    interrupted = 0;
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
  }
  ~Interrupts() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }
};

class QuietClient final : public Client {
 public:
  explicit QuietClient(bool takes_signals) {
    if (takes_signals) interrupts_.emplace();
  }
  void report_metrics(const std::string&, std::int64_t, const Json&) override {}
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const CheckpointRecord&) override {}
  void report_invalid_hp() override {}
  bool should_preempt() const override { return interrupts_ && interrupted != 0; }
  void acknowledge_preemption() override {}
  bool flush(std::chrono::seconds) override { return true; }

 private:
  std::optional<Interrupts> interrupts_;
};

class LocalClient final : public Client {
 public:
  explicit LocalClient(std::string media_dir) : media_dir_(std::move(media_dir)) {}
  void report_metrics(const std::string& group, std::int64_t steps_completed, const Json& metrics) override {
    // One printf per report, because another thread may report at the same time.
    std::string line;
    for (const auto& [name, value] : metrics.items()) {
      if (name != "batches") line += "  " + name + " " + to_text(value);
    }
    std::printf("%-10s batch %lld%s\n", group.c_str(), static_cast<long long>(steps_completed), line.c_str());
    std::fflush(stdout);
  }
  void report_progress(double progress, std::int64_t steps_completed) override {
    // Two threads report at the same time: one line is enough.
    if (measuring_.test_and_set()) return;
    const MonoTime now = mono_now();
    const bool due = now - progress_printed_ >= kProgressInterval;
    // Throughput is measured from the first report on.
    if (due || !measured_) throughput_.add(steps_completed, progress, now);
    measured_ = true;
    if (due) {
      progress_printed_ = now;
      std::printf("progress   batch %lld  %s%s\n", static_cast<long long>(steps_completed),
                  percentage(progress).c_str(), throughput_.text(now).c_str());
      std::fflush(stdout);
    }
    measuring_.clear();
  }
  void report_checkpoint(const CheckpointRecord& record) override {
    std::printf("checkpoint batch %lld  %s", static_cast<long long>(record.steps_completed),
                record.uuid.c_str());
    end_line();
  }
  void report_media(const MediaRecord& record) override {
    static const std::map<std::string, std::string> kEndings = {
        {"IMAGE", ".png"}, {"TEXT", ".txt"}, {"HISTOGRAM", ".json"}, {"TABLE", ".json"}};
    const auto ending = kEndings.find(record.kind);
    // Names are relative paths: is_media_name().
    const std::string directory = media_dir_ + "/" + record.name;
    const std::string path = directory + "/" + std::to_string(record.steps_completed) +
                             (ending == kEndings.end() ? "-" + record.file_name : ending->second);
    Status done = make_directories(directory);
    if (done) done = write_file_atomic(path, record.content);
    // Each batch of a validation may replace the entry: one line is enough.
    const auto printed = printed_.get();
    if (done && printed != nullptr && printed->contains(path)) return;
    auto next = printed == nullptr || printed->size() > kPrintedPaths ? std::set<std::string>() : *printed;
    next.insert(path);
    printed_.set(std::make_shared<const std::set<std::string>>(std::move(next)));
    std::printf("media      batch %lld  %s", static_cast<long long>(record.steps_completed),
                done ? path.c_str() : ("not written: " + done.error().message).c_str());
    end_line();
  }
  void report_invalid_hp() override {}
  bool should_preempt() const override { return interrupted != 0; }
  void acknowledge_preemption() override {
    // det dev continues the training itself.
    const bool continued = std::getenv("DET_DEV_SESSION") != nullptr;
    std::printf("interrupted: saved%s",
                continued ? "" : "; continue with latest_checkpoint \"latest\" (det-harness --resume)");
    end_line();
  }
  bool flush(std::chrono::seconds) override { return true; }

 private:
  const std::string media_dir_;
  Shared<std::set<std::string>> printed_;  ///< paths of media that were printed, the newest ones
  Interrupts interrupts_;
  std::atomic_flag measuring_;  ///< set by the thread that uses the members below
  Throughput throughput_;
  bool measured_ = false;  ///< throughput_ has a reading
  MonoTime progress_printed_ = mono_now();
  static void end_line() {
    std::putchar('\n');
    std::fflush(stdout);
  }
};

}  // namespace

std::unique_ptr<Client> make_local_client(std::string media_dir) {
  return std::make_unique<LocalClient>(std::move(media_dir));
}
std::unique_ptr<Client> make_quiet_client(bool takes_signals) {
  return std::make_unique<QuietClient>(takes_signals);
}

}  // namespace det
