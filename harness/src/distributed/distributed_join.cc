// Rendezvous of a trial's ranks: rank 0 listens until every other rank has opened both of its connections.
// Other programs that connect are rejected with a reason.
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "common/crypto/digest.h"
#include "harness/src/distributed/distributed_star.h"

namespace det {
namespace {

constexpr char kMagic[8] = {'D', 'E', 'T', 'S', 'T', 'A', 'R', '2'};
/// Unidentified connections that are kept, beyond two per rank.
constexpr std::size_t kMaxStrangers = 64;
/// The port may still be in use by a previous run.
constexpr auto kBindPatience = std::chrono::seconds(30);
/// Additional time for rank 0's explanation of a timeout.
constexpr auto kWordPatience = std::chrono::seconds(10);

/// First message of a rank on each of its connections.
struct Hello {
  char magic[8];
  std::uint32_t size, rank, local_rank, cross_rank;
  std::uint32_t news;  ///< 1: the connection for presence messages
  char host[68];
  char proof[64];
  char process[16];  ///< random, the same on both connections of a process
};
/// Rank 0's answer to a Hello.
struct Reply {
  char magic[8];
  std::uint32_t refused, bytes;  ///< length of the following text: the reason, or the places of all ranks
};
/// Machine of a rank, as sent to all ranks.
struct Place {
  std::uint32_t local_rank, cross_rank;
  char host[68];
};

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

std::string own_host() {
  char name[68] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// Digest that proves knowledge of the launch's secret without revealing it; a constant when there is no
/// secret.
std::string proof() {
  for (const char* name : {"DET_LAUNCH_TOKEN", "TORCHELASTIC_RUN_ID"}) {
    const char* token = std::getenv(name);
    if (token != nullptr && *token != '\0') return sha256_hex(std::string("determinant launch\n") + token);
  }
  return sha256_hex("determinant launch");
}

std::string chief_of(const RankInfo& info) {
  return info.chief_address + ":" + std::to_string(info.chief_port);
}

void resolve(const RankInfo& info, AddressList& list) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const int code =
      ::getaddrinfo(info.chief_address.c_str(), std::to_string(info.chief_port).c_str(), &hints, &list.first);
  if (code != 0 || list.first == nullptr) {
    throw std::runtime_error("MASTER_ADDR " + info.chief_address +
                             " has no address: " + ::gai_strerror(code));
  }
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  }
  return address->sa_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == 127;
}

/// Small messages are sent at once; a machine that lost power is detected within a minute (15 s + 6 × 5 s).
void tune(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 6);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

int milliseconds_left(MonoTime deadline) {
  return static_cast<int>(std::max<std::int64_t>(0, (deadline - mono_now()).count() / 1000));
}

// ---- rank 0 ----

/// Listens on the loopback interface if all ranks are on this machine, else on all interfaces.
UniqueFd listen_as_chief(const RankInfo& info, const addrinfo& own) {
  sockaddr_storage address{};
  socklen_t size = own.ai_addrlen;
  std::memcpy(&address, own.ai_addr, size);
  if (info.cross_size > 1 || !is_loopback(own.ai_addr)) {
    if (own.ai_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr = in6addr_any;
    } else {
      reinterpret_cast<sockaddr_in*>(&address)->sin_addr.s_addr = htonl(INADDR_ANY);
    }
  }
  UniqueFd fd(::socket(own.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), 1024) != 0) {
    return UniqueFd();
  }
  return fd;
}

/// Rank 0's side of the rendezvous.
class Gate {
 public:
  Gate(const RankInfo& info, Duration timeout)
      : info_(info),
        deadline_(mono_now() + timeout),
        peers_(static_cast<std::size_t>(info.size)),
        processes_(peers_.size()),
        proof_(proof()) {
    peers_[0].host = own_host();
    peers_[0].local_rank = info.local_rank;
    peers_[0].cross_rank = info.cross_rank;
    AddressList list;
    resolve(info, list);
    int problem = 0;
    wait_until(
        [&] { return listener_ = listen_as_chief(info_, *list.first), problem = errno, bool(listener_); },
        std::min<Duration>(timeout, kBindPatience));
    if (!listener_) {
      throw std::runtime_error("rank 0 cannot listen on " + chief_of(info) + ": " + std::strerror(problem) +
                               "; set MASTER_PORT to a free port");
    }
  }

  std::vector<Peer> admit_all() {
    while (missing() > 0) {
      if (milliseconds_left(deadline_) == 0) fail_join(absent_ranks());
      admit_some();
    }
    const std::string places = pack_places();
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      reply(peers_[rank].values.get(), 0, places);
      reply(peers_[rank].news.get(), 0, places);
      tune(peers_[rank].values.get());
      tune(peers_[rank].news.get());
    }
    return std::move(peers_);
  }

 private:
  /// A connection that has not identified itself completely.
  struct Stranger {
    UniqueFd fd;
    std::string said;
  };

  std::size_t missing() const {
    std::size_t count = 0;
    for (std::size_t rank = 1; rank < peers_.size(); ++rank)
      count += !peers_[rank].values + !peers_[rank].news;
    return count;
  }

  /// Waits for one event: a new connection, data of an unidentified one, or the end of an admitted rank.
  void admit_some() {
    std::vector<pollfd> waits{{listener_.get(), POLLIN, 0}};
    for (const Stranger& stranger : strangers_) waits.push_back({stranger.fd.get(), POLLIN, 0});
    const std::size_t first_peer = waits.size();
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      if (!peers_[rank].news) continue;
      waits.push_back({peers_[rank].news.get(), POLLIN, 0});
      ranks.push_back(rank);
    }
    if (::poll(waits.data(), waits.size(), milliseconds_left(deadline_)) <= 0) return;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      // An admitted rank sends nothing yet, so an event on its connection means that it ended.
      if (waits[first_peer + i].revents == 0) continue;
      fail_join("rank " + std::to_string(ranks[i]) + " (on host " + peers_[ranks[i]].host +
                ") is gone: it ended before all ranks had joined");
    }
    for (std::size_t i = first_peer - 1; i-- > 0;) {
      if (waits[1 + i].revents != 0 && !hear(strangers_[i])) {
        strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (waits[0].revents == 0) return;
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    // The oldest is dropped, so that connections that never identify themselves cannot block the ranks.
    if (strangers_.size() >= kMaxStrangers + 2 * peers_.size()) strangers_.erase(strangers_.begin());
    strangers_.push_back({std::move(fd), ""});
  }

  /// Reads from an unidentified connection. Returns false when it is finished: admitted, rejected or closed.
  bool hear(Stranger& stranger) {
    Hello hello{};
    char buffer[sizeof hello];
    const ssize_t got = ::recv(stranger.fd.get(), buffer, sizeof hello - stranger.said.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    stranger.said.append(buffer, static_cast<std::size_t>(got));
    // Other protocols are detected by their first bytes, without waiting for a whole Hello.
    const std::size_t known = std::min(stranger.said.size(), sizeof kMagic);
    if (std::memcmp(stranger.said.data(), kMagic, known) != 0) return false;
    if (stranger.said.size() < sizeof hello) return true;
    std::memcpy(&hello, stranger.said.data(), sizeof hello);
    hello.host[sizeof hello.host - 1] = '\0';
    const std::string refusal = admit(hello, stranger.fd);
    if (!refusal.empty()) reply(stranger.fd.get(), 1, refusal);
    return false;
  }

  /// Admits a rank and takes its connection. Returns "" or the reason for a rejection.
  std::string admit(const Hello& hello, UniqueFd& fd) {
    if (!equal_secret({hello.proof, sizeof hello.proof}, proof_)) {
      return "it is of another launch (DET_LAUNCH_TOKEN or TORCHELASTIC_RUN_ID differ)";
    }
    if (hello.size != peers_.size()) {
      return "rank 0 was started with WORLD_SIZE=" + std::to_string(peers_.size()) + ", this process with " +
             std::to_string(hello.size);
    }
    if (hello.rank == 0 || hello.rank >= peers_.size())
      return "RANK=" + std::to_string(hello.rank) + " is not expected";
    Peer& peer = peers_[hello.rank];
    UniqueFd& place = hello.news == 1 ? peer.news : peer.values;
    const std::string process(hello.process, sizeof hello.process);
    std::string& admitted = processes_[hello.rank];
    // Both connections must be of one process: connections of two rivals can arrive in turn.
    if (place || (!admitted.empty() && admitted != process))
      return "another process (on host " + peer.host + ") has come with RANK=" + std::to_string(hello.rank);
    admitted = process;
    place = std::move(fd);
    peer.host = make_utf8(hello.host);
    peer.local_rank = static_cast<int>(hello.local_rank);
    peer.cross_rank = static_cast<int>(hello.cross_rank);
    return "";
  }

  static void reply(int fd, std::uint32_t refused, const std::string& text) {
    Reply head{{}, refused, static_cast<std::uint32_t>(text.size())};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    std::string message(reinterpret_cast<const char*>(&head), sizeof head);
    message += text;
    (void)::send(fd, message.data(), message.size(), MSG_NOSIGNAL);
  }

  std::string absent_ranks() const {
    std::vector<std::string> absent;
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      if (!peers_[rank].values || !peers_[rank].news) absent.push_back(std::to_string(rank));
    }
    return (absent.size() == 1 ? "rank " : "ranks ") + join(absent, ", ") + " of " +
           std::to_string(peers_.size()) + " did not connect to rank 0 at " + chief_of(info_) + " in time";
  }

  /// Sends the reason to all ranks that have joined, then throws.
  [[noreturn]] void fail_join(const std::string& why) {
    for (const Peer& peer : peers_) {
      if (peer.values) reply(peer.values.get(), 1, why);
    }
    throw std::runtime_error(why);
  }

  std::string pack_places() const {
    std::string packed;
    for (const Peer& peer : peers_) {
      Place place{
          static_cast<std::uint32_t>(peer.local_rank), static_cast<std::uint32_t>(peer.cross_rank), {}};
      std::strncpy(place.host, peer.host.c_str(), sizeof place.host - 1);
      packed.append(reinterpret_cast<const char*>(&place), sizeof place);
    }
    return packed;
  }

  const RankInfo& info_;
  const MonoTime deadline_;
  std::vector<Peer> peers_;
  std::vector<std::string> processes_;  ///< Hello::process of the admitted one, by rank
  const std::string proof_;
  UniqueFd listener_;
  std::vector<Stranger> strangers_;
};

// ---- other ranks ----

/// One connection attempt. Returns no descriptor when rank 0 is not listening yet.
UniqueFd connect_once(const addrinfo* addresses) {
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    UniqueFd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    if (::connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0) return fd;
    if (errno != EINPROGRESS) continue;
    pollfd wait{fd.get(), POLLOUT, 0};
    int problem = 0;
    socklen_t size = sizeof problem;
    if (::poll(&wait, 1, 5000) == 1 && ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size) == 0 &&
        problem == 0) {
      return fd;
    }
  }
  return UniqueFd();
}

UniqueFd call_chief(const RankInfo& info, const AddressList& addresses, const std::string& process, bool news,
                    MonoTime deadline) {
  UniqueFd fd;
  wait_until([&] { return fd = connect_once(addresses.first), bool(fd); }, deadline - mono_now());
  if (!fd) {
    throw std::runtime_error("rank " + std::to_string(info.rank) + " cannot connect to rank 0 at " +
                             chief_of(info) +
                             " in time: rank 0 did not start, or MASTER_ADDR and MASTER_PORT are wrong");
  }
  Hello hello{{},
              static_cast<std::uint32_t>(info.size),
              static_cast<std::uint32_t>(info.rank),
              static_cast<std::uint32_t>(info.local_rank),
              static_cast<std::uint32_t>(info.cross_rank),
              news ? 1u : 0u,
              {},
              {},
              {}};
  std::memcpy(hello.magic, kMagic, sizeof kMagic);
  std::strncpy(hello.host, own_host().c_str(), sizeof hello.host - 1);
  std::memcpy(hello.proof, proof().data(), sizeof hello.proof);
  std::memcpy(hello.process, process.data(), sizeof hello.process);
  (void)::send(fd.get(), &hello, sizeof hello, MSG_NOSIGNAL);
  return fd;
}

/// Reads exactly `size` bytes before the deadline, or throws.
void read_reply(const RankInfo& info, int fd, void* data, std::size_t size, MonoTime deadline) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    pollfd wait{fd, POLLIN, 0};
    if (::poll(&wait, 1, milliseconds_left(deadline)) == 0) {
      throw std::runtime_error("rank " + std::to_string(info.rank) + " reached rank 0 at " + chief_of(info) +
                               ", but not all ranks came in time");
    }
    const ssize_t got = ::recv(fd, at, size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) {
      throw std::runtime_error("rank 0 (at " + chief_of(info) +
                               ") is gone: it ended before all ranks had joined");
    }
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::string await_welcome(const RankInfo& info, int fd, MonoTime deadline) {
  Reply head{};
  read_reply(info, fd, &head, sizeof head, deadline);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.bytes > (64u << 20)) {
    throw std::runtime_error("what listens at " + chief_of(info) +
                             " is not rank 0 of this trial; change MASTER_PORT");
  }
  std::string text(head.bytes, '\0');
  read_reply(info, fd, text.data(), text.size(), deadline);
  if (head.refused != 0)
    throw std::runtime_error("rank " + std::to_string(info.rank) + " could not join: " + text);
  return text;
}

std::vector<Peer> join_chief(const RankInfo& info, Duration timeout) {
  const MonoTime deadline = mono_now() + timeout;
  AddressList addresses;
  resolve(info, addresses);
  std::vector<Peer> peers(static_cast<std::size_t>(info.size));
  const std::string process = random_bytes(sizeof Hello::process);
  peers[0].values = call_chief(info, addresses, process, false, deadline);
  peers[0].news = call_chief(info, addresses, process, true, deadline);
  // Rank 0 can name the missing ranks, so its explanation is awaited beyond the deadline.
  const std::string places = await_welcome(info, peers[0].values.get(), deadline + kWordPatience);
  (void)await_welcome(info, peers[0].news.get(), deadline + kWordPatience);
  if (places.size() != peers.size() * sizeof(Place))
    throw std::runtime_error("rank 0 sent an ill-formed welcome");
  for (std::size_t rank = 0; rank < peers.size(); ++rank) {
    Place place{};
    std::memcpy(&place, places.data() + rank * sizeof place, sizeof place);
    place.host[sizeof place.host - 1] = '\0';
    peers[rank].host = place.host;
    peers[rank].local_rank = static_cast<int>(place.local_rank);
    peers[rank].cross_rank = static_cast<int>(place.cross_rank);
  }
  tune(peers[0].values.get());
  tune(peers[0].news.get());
  return peers;
}

}  // namespace

std::vector<Peer> join_star(const RankInfo& info, Duration timeout) {
  return info.rank == 0 ? Gate(info, timeout).admit_all() : join_chief(info, timeout);
}

}  // namespace det
