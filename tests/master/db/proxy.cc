#include "tests/master/db/proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "common/base/fd.h"
#include "common/base/files.h"

namespace det::test {
namespace {

UniqueFd unix_socket(const std::string& path, bool listening) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* raw = reinterpret_cast<const sockaddr*>(&address);
  const int rc = listening ? bind(fd.get(), raw, sizeof address) : connect(fd.get(), raw, sizeof address);
  if (rc != 0 || (listening && listen(fd.get(), 16) != 0)) fd.reset();
  return fd;
}

std::string quoted_after(const std::string& text, const std::string& key) {
  const std::size_t from = text.find(key) + key.size();
  return text.substr(from, text.find('\'', from) - from);
}

bool forward(int to, std::string_view bytes) { return write_all(to, bytes).has_value(); }

/// Finds COMMIT in the client's bytes, as a simple query or as a bound prepared statement.
class CommitFinder {
 public:
  /// The offset in `bytes` of the message that carries COMMIT, if there is one. Each byte of a connection
  /// must be passed once.
  std::optional<std::size_t> commit_in(std::string_view bytes) {
    const std::size_t before = held_.size();
    held_ += bytes;
    std::size_t at = 0;
    std::optional<std::size_t> found;
    // The first message of a connection has no type byte.
    while (held_.size() >= at + (started_ ? 5 : 4)) {
      const std::size_t head = started_ ? 1 : 0;
      std::uint32_t length = 0;
      for (std::size_t i = 0; i < 4; ++i)
        length = length << 8 | static_cast<unsigned char>(held_[at + head + i]);
      if (held_.size() < at + head + length) break;
      if (started_ && commits(held_[at], std::string_view(held_).substr(at + 5, length - 4)) && !found)
        found = at < before ? 0 : at - before;
      started_ = true;
      at += head + length;
    }
    held_.erase(0, at);
    return found;
  }

 private:
  bool commits(char type, std::string_view body) {
    const std::string_view first = body.substr(0, body.find('\0'));
    if (type == 'Q') return first == "COMMIT";
    const std::string_view rest = body.substr(std::min(first.size() + 1, body.size()));
    const std::string_view second = rest.substr(0, rest.find('\0'));
    if (type == 'P' && second == "COMMIT") name_ = first;
    return type == 'B' && name_ && second == *name_;
  }
  std::string held_;
  bool started_ = false;
  std::optional<std::string> name_;
};

/// Whether the last message is ReadyForQuery.
bool ends_answer(std::string_view bytes) {
  constexpr std::string_view kReady("Z\0\0\0\5", 5);  // One byte with the transaction state follows.
  return bytes.size() > kReady.size() &&
         bytes.substr(bytes.size() - kReady.size() - 1, kReady.size()) == kReady;
}

}  // namespace

struct Proxy::Impl {
  TemporaryDirectory directory;
  std::string server, database;
  UniqueFd listener;
  UniqueFd wake_read, wake_write;
  std::atomic<Cut> how{Cut::kNever};
  std::atomic<int> cuts{0};
  std::thread thread;
  struct Pair {
    UniqueFd client, backend;
    CommitFinder finder;
  };
  std::vector<Pair> pairs;

  explicit Impl(TemporaryDirectory d) : directory(std::move(d)) {}

  void run() {
    for (;;) {
      std::vector<pollfd> waiting = {{wake_read.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
      for (const Pair& pair : pairs) {
        waiting.push_back({pair.client.get(), POLLIN, 0});
        waiting.push_back({pair.backend.get(), POLLIN, 0});
      }
      poll(waiting.data(), waiting.size(), -1);
      if (waiting[0].revents != 0) return;
      std::vector<Pair> kept;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        bool alive = true;
        if (waiting[2 + 2 * i].revents != 0) alive = from_client(pairs[i]);
        if (alive && waiting[3 + 2 * i].revents != 0)
          alive = copy(pairs[i].backend.get(), pairs[i].client.get());
        if (alive) kept.push_back(std::move(pairs[i]));
      }
      pairs = std::move(kept);
      if (waiting[1].revents != 0) accept_one();
    }
  }

  void accept_one() {
    UniqueFd client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (how == Cut::kEverything) return;
    UniqueFd backend = unix_socket(server, false);
    if (client && backend) pairs.push_back({std::move(client), std::move(backend), {}});
  }

  static bool copy(int from, int to) {
    char buffer[65536];
    const ssize_t count = recv(from, buffer, sizeof buffer, 0);
    return count > 0 && forward(to, {buffer, static_cast<std::size_t>(count)});
  }

  /// Returns false if the connection has to be cut.
  bool from_client(Pair& pair) {
    char buffer[65536];
    const ssize_t count = recv(pair.client.get(), buffer, sizeof buffer, 0);
    if (count <= 0 || how == Cut::kEverything) return false;
    const std::string_view bytes(buffer, static_cast<std::size_t>(count));
    const auto commit = pair.finder.commit_in(bytes);
    const Cut now = commit ? how.exchange(Cut::kNever) : Cut::kNever;
    if (now == Cut::kNever) return forward(pair.backend.get(), bytes);
    ++cuts;
    forward(pair.backend.get(), now == Cut::kBeforeCommit ? bytes.substr(0, *commit) : bytes);
    if (now == Cut::kBeforeCommit) return false;
    char answer[65536];
    for (ssize_t got = 1; got > 0;) {
      got = recv(pair.backend.get(), answer, sizeof answer, 0);
      if (got > 0 && ends_answer({answer, static_cast<std::size_t>(got)})) break;
    }
    return false;
  }
};

Proxy::Proxy(const std::string& url) {
  auto directory = TemporaryDirectory::create("det-proxy", "/tmp");
  REQUIRE(directory);
  impl_ = std::make_unique<Impl>(std::move(*directory));
  impl_->server = quoted_after(url, "host='") + "/.s.PGSQL.5432";
  impl_->database = quoted_after(url, "dbname='");
  impl_->listener = unix_socket(impl_->directory.path() + "/.s.PGSQL.5432", true);
  REQUIRE(impl_->listener);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  impl_->wake_read.reset(ends[0]);
  impl_->wake_write.reset(ends[1]);
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

Proxy::~Proxy() {
  impl_->wake_write.reset();
  impl_->thread.join();
}

db::ConnectOptions Proxy::connect() const {
  return {.url = "host='" + impl_->directory.path() + "' port=5432 user=det dbname='" + impl_->database +
                 "' sslmode=disable gssencmode=disable"};
}
void Proxy::cut(Cut how) { impl_->how = how; }
int Proxy::cuts() const { return impl_->cuts; }

}  // namespace det::test
