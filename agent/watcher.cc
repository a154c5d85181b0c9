#include "agent/watcher.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "common/base/files.h"

namespace det::agent {
namespace {

// epoll data of the two internal descriptors. Keys of processes are offset by kFirst.
constexpr std::uint64_t kSignals = 0, kQuit = 1, kFirst = 2;

Status add(int epoll, int fd, std::uint32_t events, std::uint64_t data) {
  epoll_event event{.events = events, .data = {.u64 = data}};
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? Status{} : fail_errno("epoll_ctl");
}

}  // namespace

Result<std::unique_ptr<Watcher>> Watcher::start(Events events) {
  sigset_t mine;
  ::sigemptyset(&mine);
  ::sigaddset(&mine, SIGTERM);
  ::sigaddset(&mine, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &mine, nullptr);
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd signals(::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK));
  UniqueFd quit(::eventfd(0, EFD_CLOEXEC));
  if (!epoll || !signals || !quit) return fail_errno("epoll");
  TRY(add(epoll.get(), signals.get(), EPOLLIN, kSignals));
  TRY(add(epoll.get(), quit.get(), EPOLLIN, kQuit));
  std::unique_ptr<Watcher> watcher(
      new Watcher(std::move(events), std::move(epoll), std::move(signals), std::move(quit)));
  watcher->thread_ = std::thread([self = watcher.get()] { self->run(); });
  return watcher;
}

Watcher::~Watcher() {
  const std::uint64_t one = 1;
  (void)!::write(quit_.get(), &one, sizeof one);
  // The thread sees kQuit and returns; callbacks in progress finish first.
  thread_.join();
}

Status Watcher::watch(int pidfd, std::uint64_t key) {
  // One-shot: a pidfd stays readable after the end.
  return add(epoll_.get(), pidfd, EPOLLIN | EPOLLONESHOT, key + kFirst);
}

void Watcher::run() {
  for (;;) {
    std::array<epoll_event, 16> found;
    const int count = ::epoll_wait(epoll_.get(), found.data(), found.size(), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t data = found[static_cast<std::size_t>(i)].data.u64;
      if (data == kQuit) return;
      if (data == kSignals) {
        signalfd_siginfo info;
        if (::read(signals_.get(), &info, sizeof info) == sizeof info)
          events_.stop_asked(static_cast<int>(info.ssi_signo));
      } else {
        events_.ended(data - kFirst);
      }
    }
  }
}

}  // namespace det::agent
