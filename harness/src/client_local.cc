// Owns the client of a program that trains without a cluster: a readable line a report.
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "client.h"

namespace det {
namespace {

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

class LocalClient final : public Client {
 public:
  LocalClient() {
    interrupted = 0;
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
  }
  ~LocalClient() override {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }

  void report_metrics(const std::string& group, std::int64_t steps_completed, const Json& metrics) override {
    std::printf("%-10s batch %lld", group.c_str(), static_cast<long long>(steps_completed));
    for (const auto& [name, value] : metrics.items()) {
      if (name != "batches") std::printf("  %s %s", name.c_str(), to_text(value).c_str());
    }
    end_line();
  }
  void report_progress(double, std::int64_t) override {}
  void report_checkpoint(const CheckpointRecord& record) override {
    std::printf("checkpoint batch %lld  %s", static_cast<long long>(record.steps_completed), record.uuid.c_str());
    end_line();
  }
  void report_invalid_hp() override {}
  bool should_preempt() const override { return interrupted != 0; }
  void acknowledge_preemption() override {
    std::printf("interrupted: saved; continue with latest_checkpoint \"latest\" (det-harness --resume)");
    end_line();
  }
  bool flush(std::chrono::seconds) override { return true; }

 private:
  static void end_line() {
    std::putchar('\n');
    std::fflush(stdout);
  }
};

}  // namespace

std::unique_ptr<Client> make_local_client() { return std::make_unique<LocalClient>(); }

}  // namespace det
