// Starts the ranks of a test: processes of a helper program with torchrun's variables, or threads.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/process.h"

namespace det::testing {

/// Reserves a loopback port for the object's lifetime. Rank 0 can still listen on it.
class ReservedPort {
 public:
  ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(fd_.get(), generic, size) != 0 || ::getsockname(fd_.get(), generic, &size) != 0) {
      throw std::runtime_error("no port");
    }
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

/// The exit of one rank.
struct RankEnd {
  ExitStatus status;
  std::string out;
  Duration took{};  ///< since the start of the last rank
};

/// Starts `size` processes `argv` on one machine with RANK and the other variables. Waits at most a minute
/// for all.
inline std::vector<RankEnd> run_ranks(int size, const std::vector<std::string>& argv) {
  const ReservedPort port;
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) {
    const std::string ranks = std::to_string(size), number = std::to_string(rank);
    children.push_back(Child::spawn({.argv = argv,
                                     .env = environment_with(
                                         {"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=" + ranks,
                                          "LOCAL_WORLD_SIZE=" + ranks, "MASTER_ADDR=127.0.0.1",
                                          "OMP_NUM_THREADS=1", "MASTER_PORT=" + std::to_string(port.port())}),
                                     .cwd = "",
                                     .out = Stream::pipe(),
                                     .err = Stream::inherit()})
                           .value());
  }
  const MonoTime start = mono_now();
  std::vector<RankEnd> ends;
  for (Child& child : children) {
    RankEnd end;
    char buffer[4096];
    for (ssize_t got; (got = ::read(child.out().get(), buffer, sizeof buffer)) > 0;) {
      end.out.append(buffer, static_cast<std::size_t>(got));
    }
    const auto status = child.wait(std::chrono::seconds(60));
    end.status = status ? *status : child.stop(std::chrono::seconds(0));
    end.took = mono_now() - start;
    ends.push_back(std::move(end));
  }
  return ends;
}

}  // namespace det::testing
