// Star of TCP connections around rank 0: collectives by way of the chief, and detection of absent ranks.
#include "harness/src/distributed/distributed_star.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace det {
namespace {

/// Prefix of a value. Call and number detect ranks that make different calls.
struct Header {
  std::uint64_t bytes;
  std::uint32_t call, number;
};

constexpr const char* kCallNames[] = {"gather",       "allgather",       "broadcast",      "barrier",
                                      "gather_local", "allgather_local", "broadcast_local"};

std::string call_name(std::uint32_t call) {
  return call < std::size(kCallNames) ? kCallNames[call] : "something unknown";
}

bool send_all(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(fd, at, size, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

/// Concatenates values with 64-bit lengths; the inverse of unpack().
std::string pack(const std::vector<std::string>& values) {
  std::string packed;
  for (const std::string& value : values) {
    const std::uint64_t size = value.size();
    packed.append(reinterpret_cast<const char*>(&size), sizeof size).append(value);
  }
  return packed;
}

std::vector<std::string> unpack(const std::string& packed) {
  std::vector<std::string> values;
  for (std::size_t at = 0; at < packed.size();) {
    std::uint64_t size = 0;
    std::memcpy(&size, packed.data() + at, sizeof size);
    values.push_back(packed.substr(at + sizeof size, size));
    at += sizeof size + size;
  }
  return values;
}

}  // namespace

DistributedContext::Star::Star(const RankInfo& info, Duration timeout)
    : info_(info),
      peers_(join_star(info, timeout)),
      presence_(static_cast<std::size_t>(info.size)) {  // all here
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) throw std::system_error(errno, std::generic_category(), "eventfd");
  watcher_ = std::thread([this] { watch(); });
}

DistributedContext::Star::~Star() {
  // An orderly departure is announced, so that the end of the connection is not taken for a crash.
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    notify(static_cast<int>(rank),
           {static_cast<std::uint32_t>(info_.rank), static_cast<std::uint32_t>(Presence::kLeft)});
  }
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  watcher_.join();
}

std::vector<std::string> DistributedContext::Star::collect(Call call, const std::string& value) {
  if (!chief()) return send(0, call, value), std::vector<std::string>();
  std::vector<std::string> values{value};
  for (int rank = 1; rank < info_.size; ++rank) values.push_back(receive(rank, call));
  return values;
}

std::vector<std::string> DistributedContext::Star::gather(const std::string& value) {
  ++calls_;
  return collect(Call::kGather, value);
}

std::vector<std::string> DistributedContext::Star::allgather(Call call, const std::string& value) {
  ++calls_;
  std::vector<std::string> values = collect(call, value);
  if (!chief()) return unpack(receive(0, call));
  const std::string packed = pack(values);
  for (int rank = 1; rank < info_.size; ++rank) send(rank, call, packed);
  return values;
}

std::string DistributedContext::Star::broadcast(const std::string& value) {
  ++calls_;
  if (!chief()) return receive(0, Call::kBroadcast);
  for (int rank = 1; rank < info_.size; ++rank) send(rank, Call::kBroadcast, value);
  return value;
}

std::vector<std::string> DistributedContext::Star::of_machine(const std::vector<std::string>& values,
                                                              int cross_rank) const {
  std::vector<std::string> local;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (peers_[rank].cross_rank == cross_rank) local.push_back(values[rank]);
  }
  return local;
}

/// Local calls also go through rank 0: it collects all values and returns to each machine its own.
std::vector<std::string> DistributedContext::Star::gather_local(const std::string& value) {
  ++calls_;
  const std::vector<std::string> values = collect(Call::kGatherLocal, value);
  if (!chief()) {
    return info_.local_rank == 0 ? unpack(receive(0, Call::kGatherLocal)) : std::vector<std::string>();
  }
  for (int rank = 1; rank < info_.size; ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer.local_rank == 0) send(rank, Call::kGatherLocal, pack(of_machine(values, peer.cross_rank)));
  }
  return of_machine(values, info_.cross_rank);
}

std::vector<std::string> DistributedContext::Star::allgather_local(const std::string& value) {
  ++calls_;
  const std::vector<std::string> values = collect(Call::kAllgatherLocal, value);
  if (!chief()) return unpack(receive(0, Call::kAllgatherLocal));
  for (int rank = 1; rank < info_.size; ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    send(rank, Call::kAllgatherLocal, pack(of_machine(values, peer.cross_rank)));
  }
  return of_machine(values, info_.cross_rank);
}

std::string DistributedContext::Star::broadcast_local(const std::string& value) {
  ++calls_;
  const std::vector<std::string> values =
      collect(Call::kBroadcastLocal, info_.local_rank == 0 ? value : std::string());
  if (!chief()) return receive(0, Call::kBroadcastLocal);
  std::vector<std::string> of_chiefs(values.size());  // by cross rank
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    const auto machine = static_cast<std::size_t>(peers_[rank].cross_rank);
    if (peers_[rank].local_rank == 0 && machine < of_chiefs.size()) of_chiefs[machine] = values[rank];
  }
  for (std::size_t rank = 1; rank < values.size(); ++rank) {
    const auto machine = static_cast<std::size_t>(peers_[rank].cross_rank);
    send(static_cast<int>(rank), Call::kBroadcastLocal, machine < of_chiefs.size() ? of_chiefs[machine] : "");
  }
  return value;
}

void DistributedContext::Star::send(int rank, Call call, const std::string& value) {
  const int fd = peers_[static_cast<std::size_t>(rank)].values.get();
  const Header header{value.size(), static_cast<std::uint32_t>(call), calls_};
  std::string small;  // header and value in one packet
  if (value.size() <= 4096) {
    small.assign(reinterpret_cast<const char*>(&header), sizeof header).append(value);
    if (!send_all(fd, small.data(), small.size())) fail();
  } else if (!send_all(fd, &header, sizeof header) || !send_all(fd, value.data(), value.size())) {
    fail();
  }
}

std::string DistributedContext::Star::receive(int rank, Call call) {
  const int fd = peers_[static_cast<std::size_t>(rank)].values.get();
  Header header{};
  if (!receive_all(fd, &header, sizeof header)) fail();
  if (header.call != static_cast<std::uint32_t>(call) || header.number != calls_) {
    throw std::runtime_error(
        "rank " + std::to_string(rank) + " made " + call_name(header.call) + " as its call " +
        std::to_string(header.number) + " while rank " + std::to_string(info_.rank) + " made " +
        call_name(static_cast<std::uint32_t>(call)) + " as its call " + std::to_string(calls_) +
        ": every rank must make the same calls of the distributed context in the same order");
  }
  std::string value(header.bytes, '\0');
  if (!receive_all(fd, value.data(), value.size())) fail();
  return value;
}

/// Called when a value connection fails. Waits until the watcher has recorded the reason: the news of an
/// absence is sent before the value connection is closed, or at the latest when the process is gone.
void DistributedContext::Star::fail() {
  absences_.wait(0);
  throw std::runtime_error(first_absence());
}

void DistributedContext::Star::notify(int rank, News news) {
  const UniqueFd& fd = peers_[static_cast<std::size_t>(rank)].news;
  if (fd) (void)::send(fd.get(), &news, sizeof news, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void DistributedContext::Star::mark(int rank, Presence presence) {
  Presence before = Presence::kHere;
  // Only the first news of a rank counts: a rank that has left also closes its connection.
  if (!presence_[static_cast<std::size_t>(rank)].compare_exchange_strong(before, presence)) return;
  int none = -1;
  (presence == Presence::kGone ? first_gone_ : first_left_).compare_exchange_strong(none, rank);
  if (chief()) {
    for (int other = 1; other < info_.size; ++other) {
      if (other != rank)
        notify(other, {static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(presence)});
    }
  }
  absences_.fetch_add(1);
  absences_.notify_all();
  if (presence != Presence::kGone) return;
  // Calls that wait for the missing rank, directly or through rank 0, return with an error.
  for (const Peer& peer : peers_) {
    if (peer.values) ::shutdown(peer.values.get(), SHUT_RDWR);
  }
}

/// Returns false at the end of the connection.
bool DistributedContext::Star::read_news(int rank) {
  News news{};
  if (!receive_all(peers_[static_cast<std::size_t>(rank)].news.get(), &news, sizeof news)) {
    mark(rank, Presence::kGone);
    return false;
  }
  // Only rank 0 sends news of other ranks.
  const auto about = chief() ? static_cast<std::uint32_t>(rank) : news.rank;
  if (about >= peers_.size()) return true;
  mark(static_cast<int>(about),
       news.presence == static_cast<std::uint32_t>(Presence::kLeft) ? Presence::kLeft : Presence::kGone);
  return true;
}

void DistributedContext::Star::watch() {
  std::vector<pollfd> waits{{stop_.get(), POLLIN, 0}};
  std::vector<int> ranks{-1};
  for (int rank = 0; rank < info_.size; ++rank) {
    const UniqueFd& fd = peers_[static_cast<std::size_t>(rank)].news;
    if (!fd) continue;
    waits.push_back({fd.get(), POLLIN, 0});
    ranks.push_back(rank);
  }
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    for (std::size_t i = 1; i < waits.size(); ++i) {
      // poll() ignores negative descriptors.
      if (waits[i].revents != 0 && !read_news(ranks[i])) waits[i].fd = -1;
      waits[i].revents = 0;
    }
  }
}

std::string DistributedContext::Star::describe(int rank, Presence presence) const {
  if (presence == Presence::kHere) return "";
  return "rank " + std::to_string(rank) + " (on host " + peers_[static_cast<std::size_t>(rank)].host + ") " +
         (presence == Presence::kGone ? "is gone" : "has left");
}

std::string DistributedContext::Star::absence(int rank) const {
  if (rank < 0 || rank >= info_.size) return "";
  return describe(rank, presence_[static_cast<std::size_t>(rank)].load());
}

std::string DistributedContext::Star::first_gone() const {
  const int rank = first_gone_.load();
  return rank >= 0 ? describe(rank, Presence::kGone) : "";
}

std::string DistributedContext::Star::first_absence() const {
  if (std::string gone = first_gone(); !gone.empty()) return gone;
  if (const int left = first_left_.load(); left >= 0) return describe(left, Presence::kLeft);
  return "";
}

std::string DistributedContext::Star::address() const {
  if (info_.cross_size == 1) return "127.0.0.1";
  for (const Peer& peer : peers_) {
    // A rank on rank 0's own machine would show an address that other machines may not reach.
    if (!peer.values || (chief() && peer.cross_rank == info_.cross_rank)) continue;
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (::getsockname(peer.values.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) continue;
    char text[INET6_ADDRSTRLEN] = "";
    if (storage.ss_family == AF_INET) {
      return ::inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(&storage)->sin_addr, text, sizeof text);
    }
    const in6_addr& ip = reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ip)) return ::inet_ntop(AF_INET, ip.s6_addr + 12, text, sizeof text);
    return ::inet_ntop(AF_INET6, &ip, text, sizeof text);
  }
  return info_.chief_address;
}

}  // namespace det
