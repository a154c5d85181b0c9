// A trial that keeps its own ledger, which no part of the product reads: every report that the master
// acknowledged is flushed to disk there. While it runs it holds a file lock for each of its slots.
//
// Files in hparams.ledger:
//   ledger-TRIAL-RUN-PID   lines "metric TRIAL RUN GROUP STEP LOSS" and "checkpoint TRIAL UUID STEP"
//   overlaps               a line for each slot that was not free
//   token-TRIAL-RUN        "ALLOCATION TOKEN"
#include <det/core.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

class File {
 public:
  explicit File(const std::string& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw std::runtime_error("cannot open " + path);
  }
  /// Returns when the text is on the disk.
  void append(const std::string& text) {
    if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(fd_) != 0)
      throw std::runtime_error("cannot write the ledger");
  }

 private:
  int fd_;
};

/// Child processes inherit the locks: a leftover process still holds the slots of its trial.
void take_slots(const det::core::Info& info, const std::string& folder) {
  for (const int slot : info.slot_ids) {
    const std::string path = folder + "/slot-" + info.agent_id + "-" + std::to_string(slot);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) != 0)
      File(folder + "/overlaps")
          .append(info.allocation_id + " starts on " + path + " while another runs there\n");
  }
}

/// Starts a process in its own session that ignores SIGTERM and holds the output open.
void leave_somebody_behind() {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  std::signal(SIGTERM, SIG_IGN);
  for (;;) ::poll(nullptr, 0, 1000);
}

/// A function of (trial, step), so that a later run reports the same values again.
double loss_of(std::int64_t seed, std::int64_t step) {
  const auto mixed =
      static_cast<std::uint64_t>(seed) * 2654435761u + static_cast<std::uint64_t>(step) * 40503u;
  return static_cast<double>(mixed % 1000003u) / 1000003.0 + 1.0 / static_cast<double>(step);
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

int main() {
  det::core::Context core = det::core::init();
  const det::core::Info& info = core.info();
  const std::string folder = info.hparams.at("ledger").get<std::string>();
  const std::int64_t steps = info.hparams.at("steps").get<int>(),
                     save_every = info.hparams.at("save_every").get<int>();
  const int milliseconds = info.hparams.at("milliseconds").get<int>();
  take_slots(info, folder);
  if (info.hparams.value("litter", false)) leave_somebody_behind();

  // chaos.py sends reports as this run after it was replaced.
  File(folder + "/token-" + std::to_string(info.trial_id) + "-" + std::to_string(info.run))
      .append(info.allocation_id + " " + std::getenv("DET_SESSION_TOKEN") + "\n");

  const std::string who = std::to_string(info.trial_id) + " ", run = std::to_string(info.run) + " ";
  File ledger(folder + "/ledger-" + std::to_string(info.trial_id) + "-" + std::to_string(info.run) + "-" +
              std::to_string(::getpid()));
  std::string unacknowledged;
  std::int64_t done = 0;
  if (!info.latest_checkpoint.empty()) {
    core.checkpoint().restore_path(info.latest_checkpoint, [&](const std::string& directory) {
      std::ifstream(directory + "/step") >> done;
    });
  }
  const auto save = [&] {
    const auto stored = core.checkpoint().store_path(
        {{"steps_completed", done}},
        [&](const std::string& directory) { std::ofstream(directory + "/step") << done; });
    unacknowledged += "checkpoint " + who + stored.uuid + " " + std::to_string(done) + "\n";
  };
  bool asked = false;
  while (done < steps && !asked) {
    ::poll(nullptr, 0, milliseconds);
    ++done;
    const double loss = loss_of(info.trial_seed, done);
    const auto note = [&](const char* group) {
      unacknowledged +=
          "metric " + who + run + group + " " + std::to_string(done) + " " + number(loss) + "\n";
    };
    core.train().report_training_metrics(done, {{"loss", loss}});
    note("training");
    if (done % 5 == 0 || done == steps) {
      core.train().report_validation_metrics(done, {{"loss", loss}});
      note("validation");
    }
    core.train().report_progress(static_cast<double>(done) / static_cast<double>(steps), done);
    asked = core.preempt().should_preempt();
    if (done % save_every == 0 || done == steps || asked) save();
    // Reports that are not durable yet are recorded after a later flush.
    if (core.flush(std::chrono::seconds(done == steps || asked ? 3600 : 1))) {
      ledger.append(unacknowledged);
      unacknowledged.clear();
    }
  }
  return 0;
}
