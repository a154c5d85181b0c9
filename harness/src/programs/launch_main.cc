// The program det-launch: starts the processes of one trial on this machine with torchrun's environment
// variables, supervises them, and stops them together.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/openmp.h"
#include "common/base/process.h"
#include "common/base/secret.h"
#include "common/base/stop_signal.h"
#include "harness/src/programs/launch_options.h"

namespace {

/// Time between SIGTERM and SIGKILL.
constexpr auto kGrace = std::chrono::seconds(10);
/// Longer lines are broken. With its prefix such a line fits into one of the task's log, which has 64 KiB.
constexpr std::size_t kMaxLineBytes = 63 * 1024;

/// A free port of the loopback interface, reserved for the lifetime of this object: bound with SO_REUSEADDR
/// but not listening, so rank 0 can listen on it and the system assigns it to no other program.
class FreePort {
 public:
  FreePort() : held_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (held_ && ::setsockopt(held_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(held_.get(), generic, size) == 0 && ::getsockname(held_.get(), generic, &size) == 0) {
      number_ = ntohs(address.sin_port);
    }
  }
  int number() const { return number_; }

 private:
  det::UniqueFd held_;
  int number_ = 29400;
};

/// Cores per rank, of those available to this process.
int cores_for_each(int ranks) { return std::max(1, det::cpu_count() / ranks); }

/// Forwards the output of a process, line by line with a prefix. Lines end at "\n", "\r\n" and, for progress
/// bars, "\r".
class Relay {
 public:
  Relay(det::UniqueFd from, int to, std::string prefix)
      : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}
  int fd() const { return from_.get(); }
  /// Reads available output; blocks for some unless the descriptor is non-blocking. Closes it at the end of
  /// the stream.
  void pump() {
    char buffer[1 << 16];
    const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return;
    std::string out;
    if (got <= 0) {
      // The last line may lack its newline.
      if (!line_.empty()) end_line('\n', out);
      from_.reset();
    }
    for (ssize_t i = 0; i < got; ++i) add(buffer[i], out);
    if (!out.empty()) (void)!::write(to_, out.data(), out.size());
  }

 private:
  void add(char c, std::string& out) {
    // On an empty line it only returns the cursor.
    if (c == '\r' && line_.empty()) return;
    if (c == '\n' && carriage_) {
      out += c;
    } else if (c == '\n' || c == '\r') {
      end_line(c, out);
    } else {
      if (line_.size() == kMaxLineBytes) end_line('\n', out);
      line_ += c;
    }
    carriage_ = c == '\r';
  }
  void end_line(char end, std::string& out) {
    out += prefix_ + line_ + end;
    line_.clear();
  }
  det::UniqueFd from_;
  int to_;
  std::string prefix_, line_;
  bool carriage_ = false;  ///< the last line ended with '\r', so a '\n' belongs to it
};

/// The processes of this machine.
struct Ranks {
  int first = 0;  ///< rank of children[0]
  std::vector<det::Child> children;
  std::vector<int> pidfds;  ///< of the children; -1 once reaped: the descriptor stays readable
  std::vector<Relay> relays;
};

std::vector<std::string> environment_of(const det::LaunchOptions& options, int local_rank, int port,
                                        const std::string& token) {
  const auto text = [](int number) { return std::to_string(number); };
  const int ranks = options.nproc_per_node;
  std::vector<std::string> changes{"RANK=" + text(options.first_rank + local_rank),
                                   "WORLD_SIZE=" + text(options.world_size), "LOCAL_RANK=" + text(local_rank),
                                   "LOCAL_WORLD_SIZE=" + text(ranks), "GROUP_RANK=" + text(options.node_rank),
                                   "GROUP_WORLD_SIZE=" + text(options.nnodes),
                                   "MASTER_ADDR=" + options.master_addr, "MASTER_PORT=" + text(port),
                                   // A name without "=" removes the variable: rank 0 of this launch listens
                                   // on MASTER_PORT itself.
                                   "TORCHELASTIC_USE_AGENT_STORE"};
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    for (const char* name : {"OMP_NUM_THREADS=", "DET_DEFAULT_THREADS="})
      changes.push_back(name + text(cores_for_each(ranks)));
  }
  if (det::needs_spin_count([](const char* name) { return std::getenv(name) != nullptr; }))
    changes.push_back("GOMP_SPINCOUNT=" + std::string(det::kSpinCount));
  if (!token.empty()) changes.push_back("DET_LAUNCH_TOKEN=" + token);
  return det::environment_with(changes);
}

/// A secret shared by all ranks. "" when there is one already, or when several machines have no common value.
std::string token_for(const det::LaunchOptions& options) {
  if (std::getenv("DET_LAUNCH_TOKEN") != nullptr) return "";
  if (options.nnodes == 1) return det::random_token();
  const char* allocation = std::getenv("DET_ALLOCATION_ID");
  return allocation != nullptr ? allocation : "";
}

/// Starts the processes. Exits with a message when one cannot be started.
Ranks start(const det::LaunchOptions& options, int port) {
  const std::string token = token_for(options);
  Ranks ranks;
  ranks.first = options.first_rank;
  for (int local_rank = 0; local_rank < options.nproc_per_node; ++local_rank) {
    auto child = det::Child::spawn({.argv = options.program,
                                    .env = environment_of(options, local_rank, port, token),
                                    .cwd = "",
                                    .in = det::Stream::null(),
                                    .out = det::Stream::pipe(),
                                    .err = det::Stream::pipe()});
    if (!child) {
      std::cerr << "det-launch: " << child.error().message << "\n";
      std::exit(1);
    }
    const std::string prefix = "[rank=" + std::to_string(ranks.first + local_rank) + "] ";
    ranks.relays.emplace_back(std::move(child->out()), STDOUT_FILENO, prefix);
    ranks.relays.emplace_back(std::move(child->err()), STDERR_FILENO, prefix);
    ranks.pidfds.push_back(child->pidfd());
    ranks.children.push_back(std::move(*child));
  }
  return ranks;
}

void stop_all(Ranks& ranks) {
  for (det::Child& child : ranks.children) (void)child.signal_group(SIGTERM);
  for (det::Child& child : ranks.children) (void)child.stop(kGrace);
}

void say_why(const Ranks& ranks, std::size_t failed, const det::ExitStatus& status) {
  const std::string others = ranks.children.size() > 1 ? "; the others are stopped" : "";
  std::cerr << "det-launch: rank " + std::to_string(ranks.first + static_cast<int>(failed)) + " ended with " +
                   det::to_string(status) + others + "\n";
}

/// Returns the exit code of the launch: that of the first failure, 0 when all ranks have succeeded, -1 while
/// undecided.
int exit_code_of(Ranks& ranks) {
  std::size_t well = 0, failed = ranks.children.size();
  det::ExitStatus cause;
  for (std::size_t i = 0; i < ranks.children.size(); ++i) {
    det::Child& child = ranks.children[i];
    // The process group is killed before its leader is reaped; afterwards its id may belong to another group.
    if (!child.ended()) continue;
    (void)child.signal_group(SIGKILL);
    const auto status = child.wait(det::Duration(0));
    if (!status) continue;
    ranks.pidfds[i] = -1;
    if (status->ok()) {
      ++well;
    } else if (failed == ranks.children.size() || (cause.signal == 0 && status->signal != 0)) {
      // When several ranks fail at once, one killed by a signal is the cause: the others noticed its absence.
      failed = i;
      cause = *status;
    }
  }
  if (failed < ranks.children.size()) return say_why(ranks, failed, cause), cause.shell_code();
  return well == ranks.children.size() ? 0 : -1;
}

int supervise(Ranks& ranks, int signals) {
  int code = -1;
  while (code < 0) {
    std::vector<pollfd> waits{{signals, POLLIN, 0}};
    for (const int pidfd : ranks.pidfds) waits.push_back({pidfd, POLLIN, 0});
    for (const Relay& relay : ranks.relays) waits.push_back({relay.fd(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return 1;
    // Signals are forwarded to all process groups.
    if (waits[0].revents != 0) {
      signalfd_siginfo signal{};
      const bool read = ::read(signals, &signal, sizeof signal) == sizeof signal;
      if (read && (signal.ssi_signo != SIGTERM ||
                   det::obeys_stop(static_cast<pid_t>(signal.ssi_pid), det::supervisor_pid()))) {
        for (det::Child& child : ranks.children) (void)child.signal_group(static_cast<int>(signal.ssi_signo));
      }
    }
    for (std::size_t i = 0; i < ranks.relays.size(); ++i) {
      if (waits[1 + ranks.children.size() + i].revents != 0) ranks.relays[i].pump();
    }
    code = exit_code_of(ranks);
  }
  stop_all(ranks);
  // Output that is still in the pipes is forwarded. The pipes are made non-blocking, because a process that
  // left its group may hold them open.
  for (Relay& relay : ranks.relays) {
    if (relay.fd() >= 0) ::fcntl(relay.fd(), F_SETFL, O_NONBLOCK);
    while (relay.fd() >= 0) relay.pump();
  }
  return code;
}

const char* variable(const char* name) { return std::getenv(name); }

}  // namespace

int main(int argc, char** argv) {
  const auto options = det::parse_launch_options({argv + 1, argv + argc}, variable);
  if (!options) return std::cerr << "det-launch: " << options.error().message << "\n", 2;
  if (options->help) return std::cout << det::launch_help(), 0;
  // Signals are blocked and read from a descriptor, so that one poll() waits for signals and processes.
  sigset_t forwarded;
  sigemptyset(&forwarded);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&forwarded, number);
  sigprocmask(SIG_BLOCK, &forwarded, nullptr);
  const det::UniqueFd signals(::signalfd(-1, &forwarded, SFD_CLOEXEC));
  const FreePort free_port;
  Ranks ranks = start(*options, options->master_port != 0 ? options->master_port : free_port.number());
  return supervise(ranks, signals.get());
}
