#include "tests/master/db/proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/files.h"

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

}  // namespace

struct Proxy::Impl {
  TemporaryDirectory directory;
  std::string server, database;
  UniqueFd listener;
  UniqueFd wake_read, wake_write;
  std::atomic<Cut> how{Cut::kNever};
  std::atomic<int> cuts{0};
  std::thread thread;
  std::vector<std::pair<UniqueFd, UniqueFd>> pairs;  ///< client, server

  explicit Impl(TemporaryDirectory d) : directory(std::move(d)) {}

  void run() {
    for (;;) {
      std::vector<pollfd> waiting = {{wake_read.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
      for (const auto& [client, backend] : pairs) {
        waiting.push_back({client.get(), POLLIN, 0});
        waiting.push_back({backend.get(), POLLIN, 0});
      }
      poll(waiting.data(), waiting.size(), -1);
      if (waiting[0].revents != 0) return;
      std::vector<std::pair<UniqueFd, UniqueFd>> kept;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        bool alive = true;
        if (waiting[2 + 2 * i].revents != 0) alive = from_client(pairs[i]);
        if (alive && waiting[3 + 2 * i].revents != 0)
          alive = copy(pairs[i].second.get(), pairs[i].first.get());
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
    if (client && backend) pairs.emplace_back(std::move(client), std::move(backend));
  }

  static bool copy(int from, int to) {
    char buffer[65536];
    const ssize_t count = recv(from, buffer, sizeof buffer, 0);
    return count > 0 && forward(to, {buffer, static_cast<std::size_t>(count)});
  }

  /// False when the connection is to be cut.
  bool from_client(const std::pair<UniqueFd, UniqueFd>& pair) {
    char buffer[65536];
    const ssize_t count = recv(pair.first.get(), buffer, sizeof buffer, 0);
    if (count <= 0 || how == Cut::kEverything) return false;
    const std::string_view bytes(buffer, static_cast<std::size_t>(count));
    // A simple query of its own: 'Q', length, "COMMIT".
    const bool commits = bytes.size() == 12 && bytes[0] == 'Q' && bytes.substr(5, 6) == "COMMIT";
    const Cut now = commits ? how.exchange(Cut::kNever) : Cut::kNever;
    if (now == Cut::kNever) return forward(pair.second.get(), bytes);
    ++cuts;
    if (now == Cut::kAfterCommit) {
      forward(pair.second.get(), bytes);
      char answer[4096];
      (void)!recv(pair.second.get(), answer, sizeof answer, 0);
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
