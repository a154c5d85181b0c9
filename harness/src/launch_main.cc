// Owns the program det-launch: starts the processes of one trial on this machine with torchrun's variables, and ends
// them together.
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "base/process.h"

namespace {

constexpr char kUsage[] =
    "usage: det-launch [--nproc-per-node N] [--] PROGRAM [ARGUMENT...]\n"
    "Starts PROGRAM N times (default: one a slot of DET_SLOT_IDS, else 1) with RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Output lines are prefixed with [rank=N]. Signals are passed on. The\n"
    "first process that fails ends all; its exit code is det-launch's.\n";

constexpr auto kGrace = std::chrono::seconds(10);

/// DET_SLOT_IDS is "[0, 1]" or "0,1".
int slots_of_environment() {
  const char* ids = std::getenv("DET_SLOT_IDS");
  int count = 0;
  bool in_number = false;
  for (const char* c = ids; c != nullptr && *c != '\0'; ++c) {
    const bool digit = *c >= '0' && *c <= '9';
    count += digit && !in_number ? 1 : 0;
    in_number = digit;
  }
  return count > 0 ? count : 1;
}

/// A port of the loopback that is free now.
int free_port() {
  const det::UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!probe || ::bind(probe.get(), generic, size) != 0 || ::getsockname(probe.get(), generic, &size) != 0) return 29400;
  return ntohs(address.sin_port);
}

/// Passes a process's output on, line by line with its prefix.
class Relay {
 public:
  Relay(det::UniqueFd from, int to, std::string prefix) : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}
  int fd() const { return from_.get(); }
  /// Reads what is there, waiting for some unless the descriptor does not block; closes at the end.
  void pump() {
    char buffer[1 << 16];
    const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return;
    if (got <= 0) {
      if (!line_.empty()) put(line_ + "\n");
      from_.reset();
      return;
    }
    line_.append(buffer, static_cast<std::size_t>(got));
    std::string out;
    for (std::size_t end; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1)) {
      out += prefix_ + line_.substr(0, end + 1);
    }
    if (!out.empty()) (void)!::write(to_, out.data(), out.size());
  }

 private:
  void put(const std::string& text) {
    const std::string out = prefix_ + text;
    (void)!::write(to_, out.data(), out.size());
    line_.clear();
  }
  det::UniqueFd from_;
  int to_;
  std::string prefix_, line_;
};

struct Ranks {
  std::vector<det::Child> children;
  std::vector<Relay> relays;
};

/// Exits with a message when a process cannot be started.
Ranks start(const std::vector<std::string>& argv, int count) {
  const char* address = std::getenv("MASTER_ADDR");
  const char* port = std::getenv("MASTER_PORT");
  const std::string master_port = port != nullptr ? port : std::to_string(free_port());
  Ranks ranks;
  for (int rank = 0; rank < count; ++rank) {
    const std::string number = std::to_string(rank), size = std::to_string(count);
    auto child = det::Child::spawn(
        {.argv = argv,
         .env = det::environment_with({"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=" + size,
                                       "LOCAL_WORLD_SIZE=" + size,
                                       std::string("MASTER_ADDR=") + (address != nullptr ? address : "127.0.0.1"),
                                       "MASTER_PORT=" + master_port}),
         .cwd = "",
         .in = det::Stream::null(),
         .out = det::Stream::pipe(),
         .err = det::Stream::pipe()});
    if (!child) {
      std::cerr << "det-launch: " << child.error().message << "\n";
      std::exit(1);
    }
    const std::string prefix = "[rank=" + number + "] ";
    ranks.relays.emplace_back(std::move(child->out()), STDOUT_FILENO, prefix);
    ranks.relays.emplace_back(std::move(child->err()), STDERR_FILENO, prefix);
    ranks.children.push_back(std::move(*child));
  }
  return ranks;
}

void stop_all(Ranks& ranks) {
  for (det::Child& child : ranks.children) (void)child.signal_group(SIGTERM);
  for (det::Child& child : ranks.children) (void)child.stop(kGrace);
}

/// The launch's exit code once it is decided: the first failure, or 0 when all have ended well; -1 before.
int verdict(Ranks& ranks) {
  std::size_t ended = 0;
  for (det::Child& child : ranks.children) {
    // What a rank leaves behind goes with it, while the group's number is still ours.
    if (child.ended()) (void)child.signal_group(SIGKILL);
    const auto status = child.wait(det::Duration(0));
    if (!status) continue;
    if (!status->ok()) return status->shell_code();
    ++ended;
  }
  return ended == ranks.children.size() ? 0 : -1;
}

int supervise(Ranks& ranks, int signals) {
  int code = -1;
  while (code < 0) {
    std::vector<pollfd> waits{{signals, POLLIN, 0}};
    for (const det::Child& child : ranks.children) waits.push_back({child.pidfd(), POLLIN, 0});
    for (const Relay& relay : ranks.relays) waits.push_back({relay.fd(), POLLIN, 0});
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return 1;
    if (waits[0].revents != 0) {
      signalfd_siginfo signal{};
      if (::read(signals, &signal, sizeof signal) == sizeof signal) {
        for (det::Child& child : ranks.children) (void)child.signal_group(static_cast<int>(signal.ssi_signo));
      }
    }
    for (std::size_t i = 0; i < ranks.relays.size(); ++i) {
      if (waits[1 + ranks.children.size() + i].revents != 0) ranks.relays[i].pump();
    }
    code = verdict(ranks);
  }
  stop_all(ranks);
  // What is in the pipes is still passed on; a process that left its group and holds them open is not waited for.
  for (Relay& relay : ranks.relays) {
    if (relay.fd() >= 0) ::fcntl(relay.fd(), F_SETFL, O_NONBLOCK);
    while (relay.fd() >= 0) relay.pump();
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const option options[] = {{"nproc-per-node", required_argument, nullptr, 'n'},
                            {"nproc_per_node", required_argument, nullptr, 'n'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
  int count = slots_of_environment();
  for (int key; (key = ::getopt_long(argc, argv, "+h", options, nullptr)) != -1;) {
    if (key == 'h') return std::cout << kUsage, 0;
    if (key != 'n' || (count = std::atoi(optarg)) < 1) return std::cerr << kUsage, 2;
  }
  if (optind == argc) return std::cerr << kUsage, 2;
  sigset_t forwarded;
  sigemptyset(&forwarded);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&forwarded, number);
  sigprocmask(SIG_BLOCK, &forwarded, nullptr);
  const det::UniqueFd signals(::signalfd(-1, &forwarded, SFD_CLOEXEC));
  Ranks ranks = start({argv + optind, argv + argc}, count);
  return supervise(ranks, signals.get());
}
