// The acceptor and HTTP/1.1 framing, byte for byte.
#include "master/http/connection.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>
#include <future>
#include <optional>
#include <thread>

#include "bench.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/wait.h"
#include "master/http/acceptor.h"

namespace det {
namespace {

using test::Bench;
using test::body_of;
using test::Client;
using test::request;
using test::status_of;

TEST_CASE("health responds without a login, with the security headers") {
  Bench bench;
  const std::string answer = request(bench.port(), "GET /health HTTP/1.1");
  CHECK(status_of(answer) == 200);
  CHECK(body_of(answer) == "{\"status\":\"up\"}\n");
  for (const char* header : {"Content-Security-Policy: default-src 'self'", "X-Content-Type-Options: nosniff",
                             "Referrer-Policy: no-referrer", "Cross-Origin-Opener-Policy: same-origin"}) {
    CHECK(answer.find(header) != std::string::npos);
  }
  CHECK(answer.find("frame-ancestors 'none'") != std::string::npos);
}

/// A connection that one thread serves, and the client's end of its socket.
struct Served {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  http::HttpLimits limits;
  http::IdleConnections idle;
  UniqueFd client;
  std::promise<std::thread::id> ended;
  std::thread thread;

  explicit Served(const http::Handler& handler) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    client.reset(ends[0]);
    boost::asio::generic::stream_protocol::socket socket(
        io, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
    http::serve_connection(std::move(socket), "a", limits, handler, idle,
                           [this] { ended.set_value(std::this_thread::get_id()); });
    thread = std::thread([this] { io.run(); });
  }
  /// Returns when its thread has left what it was doing.
  void settle() {
    std::promise<void> settled;
    boost::asio::post(io, [&] { settled.set_value(); });
    settled.get_future().get();
  }
  ~Served() {
    work.reset();
    io.stop();
    thread.join();
  }
  void send(std::string_view bytes) const {
    REQUIRE(::send(client.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
};

TEST_CASE("a connection ends on its own thread, whatever thread drops it") {
  std::promise<std::function<void(http::Admission)>> asked;
  const http::Handler handler{
      .admit = [&](const http::Request&, std::int64_t, auto done) { asked.set_value(std::move(done)); },
      .handle = [](auto&&...) {}};
  Served served(handler);
  served.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
  // While the handler decides, its callback is the only owner of the connection.
  std::function<void(http::Admission)> done = asked.get_future().get();
  served.settle();
  done = nullptr;
  CHECK(served.ended.get_future().get() == served.thread.get_id());
}

TEST_CASE("request smuggling attempts are refused and the connection closed") {
  Bench bench;
  const std::string get = "GET /health HTTP/1.1\r\n";
  const std::string tail = "\r\n\r\nGET /health HTTP/1.1\r\nHost: b\r\n\r\n";
  for (const std::string& bytes : {
           get + "Host: a\r\nTransfer-Encoding: xchunked" + tail,
           get + "Host: a\r\nTransfer-Encoding: chunked, identity" + tail,
           get + "Host: a\r\nTransfer-Encoding: identity" + tail,
           get + "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked" + tail,
           get + "Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked" + tail,
           get + "Host: a\r\nContent-Length: 3\r\nContent-Length: 4" + tail,
           get + "Accept: x" + tail,
           get + "Host: a\r\nHost: b" + tail,
           get + "Host: a\r\nX: b\r\n folded" + tail,
           get + "Host: a\r\nX : b" + tail,
           get + "Host: a\r\nX: a\nY: b" + tail,
           "GET /health HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked" + tail,
           "GET http://a/health HTTP/1.1\r\nHost: a" + tail,
           "CONNECT a:80 HTTP/1.1\r\nHost: a" + tail,
           "GET /a b HTTP/1.1\r\nHost: a" + tail,
           std::string("GET /a\0b HTTP/1.1\r\nHost: a", 27) + tail,
           "GET /\\..\\x HTTP/1.1\r\nHost: a" + tail,
       }) {
    INFO(bytes);
    Client client(bench.port());
    client.send(bytes);
    const std::string answer = client.read_all();
    CHECK(status_of(answer) == 400);
    CHECK(answer.find("still open") == std::string::npos);
    // One response only: the bytes behind the request were not served.
    CHECK(answer.find("HTTP/1.1 ", 5) == std::string::npos);
  }
}

TEST_CASE("pipelined requests are answered in order on one connection") {
  Bench bench;
  Client client(bench.port());
  client.send(
      "GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n"
      "HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answers = client.read_all();
  const std::size_t first = answers.find("200 OK"), second = answers.find("404 Not Found");
  CHECK(first < second);
  CHECK(second < answers.rfind("200 OK"));
  CHECK(answers.ends_with("\r\n\r\n"));
}

TEST_CASE("a request may arrive byte by byte, with its body in chunks") {
  Bench bench;
  Client client(bench.port());
  for (const char c :
       std::string("POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n")) {
    client.send(std::string_view(&c, 1));
  }
  client.send("10\r\n{\"username\":\"bo\"\r\n");
  client.send("16\r\n,\"password\":\"right\"}  \r\n0\r\n\r\n");
  CHECK(status_of(client.read_until("\"bo\"")) == 200);
}

TEST_CASE("headers and bodies have size limits") {
  Bench bench;
  CHECK(status_of(request(bench.port(), "GET /health HTTP/1.1\r\nX: " + std::string(9000, 'x'))) == 431);
  CHECK(status_of(request(bench.port(), "GET /" + std::string(5000, 'x') + " HTTP/1.1")) == 431);
  std::string many = "GET /health HTTP/1.1";
  for (int i = 0; i < 70; ++i) many += "\r\nX" + std::to_string(i) + ": 1";
  CHECK(status_of(request(bench.port(), many)) == 431);
  CHECK(status_of(request(bench.port(), "POST /api/v1/auth/login HTTP/1.1",
                          std::string((1 << 20) + 1, ' '))) == 413);
  Client chunked(bench.port());
  chunked.send("POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) chunked.send("10000\r\n" + std::string(0x10000, ' ') + "\r\n");
  CHECK(status_of(chunked.read_all()) == 413);
}

TEST_CASE("a body is not read before its sender is known") {
  Bench bench;
  Client refused(bench.port());
  refused.send(
      "POST /api/v1/experiments HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer bad\r\n"
      "Content-Length: 100000000\r\n\r\n");
  const std::string answer = refused.read_all();
  CHECK(status_of(answer) == 401);
  CHECK(answer.find("X-Content-Type-Options: nosniff") != std::string::npos);
  CHECK(answer.find("still open") == std::string::npos);
  // A login has no sender yet.
  CHECK(status_of(request(bench.port(), "POST /api/v1/auth/login HTTP/1.1",
                          std::string((64 << 10) + 1, ' '))) == 413);
  CHECK(status_of(request(bench.port(), "POST /nowhere HTTP/1.1", std::string((64 << 10) + 1, ' '))) == 413);
}

TEST_CASE("bodies reserve memory as they arrive, and are refused beyond the budget") {
  Bench bench;
  const std::string head = "POST /api/v1/experiments HTTP/1.1\r\nHost: a\r\nContent-Length: 45000000\r\n\r\n";
  const std::string piece(1 << 20, ' ');
  std::optional<Client> first(bench.port());
  first->send(head);
  for (int i = 0; i < 30; ++i) first->send(piece);
  CHECK(wait_until([&] { return bench.upload_bytes() == 30 << 20; }, std::chrono::seconds(5)));
  Client second(bench.port());
  second.send(head);
  for (int i = 0; i < 10; ++i) second.send(piece);
  second.send("x");
  CHECK(status_of(second.read_all()) == 429);
  CHECK(wait_until([&] { return bench.upload_bytes() == 30 << 20; }, std::chrono::seconds(5)));
  first.reset();
  CHECK(wait_until([&] { return bench.upload_bytes() == 0; }, std::chrono::seconds(5)));
  CHECK(status_of(request(bench.port(), "POST /api/v1/experiments HTTP/1.1", R"({"config":"x"})")) == 200);
  CHECK(wait_until([&] { return bench.upload_bytes() == 0; }, std::chrono::seconds(5)));
}

TEST_CASE("Expect: 100-continue requests the body") {
  Bench bench;
  Client client(bench.port());
  client.send(
      "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  REQUIRE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 100"));
  client.send("{}");
  CHECK(client.read_until("401 ").find("HTTP/1.1 401") != std::string::npos);
}

TEST_CASE("HTTP/2 connections go to gRPC, even if the preface arrives in pieces") {
  Bench bench;
  Client whole(bench.port()), pieces(bench.port());
  whole.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  pieces.send("P");
  pieces.send("RI");
  CHECK(wait_until([&] { return bench.grpc_connections() == 1; }, std::chrono::seconds(5)));
  pieces.send(" * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  CHECK(wait_until([&] { return bench.grpc_connections() == 2; }, std::chrono::seconds(5)));
}

TEST_CASE("silent connections are closed after five seconds and delay no other") {
  Bench bench;
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<Client>(bench.port()));
    if (i % 2) silent.back()->send("PR");
  }
  CHECK(status_of(request(bench.port(), "GET /health HTTP/1.1")) == 200);
  for (auto& client : silent) CHECK(client->read_all(8).find("still open") == std::string::npos);
}

TEST_CASE("connections beyond the limit are closed at once, and closed ones free their place") {
  http::SiteOptions options;
  options.connections = 4;
  Bench bench(options);
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(std::make_unique<Client>(bench.port()));
    // An incomplete request: an idle connection would make room.
    held.back()->send("GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET ");
    CHECK(status_of(held.back()->read_until("up")) == 200);
  }
  Client refused(bench.port());
  CHECK(refused.read_all().empty());
  held.clear();
  CHECK(wait_until([&] { return status_of(request(bench.port(), "GET /health HTTP/1.1")) == 200; },
                   std::chrono::seconds(10)));
  // Connections passed to the fake gRPC server, which closes them, also free their place.
  for (int i = 0; i < 4; ++i) Client(bench.port()).send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  CHECK(wait_until([&] { return status_of(request(bench.port(), "GET /health HTTP/1.1")) == 200; },
                   std::chrono::seconds(10)));
}

TEST_CASE("idle connections make room for new ones, the longest idle first") {
  http::SiteOptions options;
  options.connections = 4;
  Bench bench(options);
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 4; ++i) {
    idle.push_back(std::make_unique<Client>(bench.port()));
    idle.back()->send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    REQUIRE(status_of(idle.back()->read_until("up\"}\n")) == 200);
  }
  CHECK(status_of(request(bench.port(), "GET /health HTTP/1.1")) == 200);
  CHECK(idle[0]->read_all(5).find("still open") == std::string::npos);
  // The others are still served.
  idle[3]->send("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(idle[3]->read_until("404").find("404") != std::string::npos);
}

TEST_CASE("the addresses of one IPv6 network share a limit") {
  const auto group = [](const char* text) {
    return http::address_group(boost::asio::ip::make_address(text));
  };
  CHECK(group("2001:db8:1:2:3::1") == group("2001:db8:1:2:ffff:ffff:ffff:ffff"));
  CHECK(group("2001:db8:1:2::1") != group("2001:db8:1:3::1"));
  CHECK(group("192.0.2.1") == "192.0.2.1");
}

/// The next test runs this one in a separate process, because the limit applies to the whole process.
TEST_CASE("a flooded port with few descriptors answers again", "[.flood]") {
  Bench bench;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 96;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  {
    // Takes all descriptors but one, which the client uses: accept() has none left.
    std::vector<UniqueFd> taken;
    do taken.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    while (taken.back());
    taken.pop_back();
    for (int i = 0; i < 50; ++i) {
      taken.pop_back();
      Client client(bench.port());
      REQUIRE(client.open());
      // The connection is closed at once instead of waiting in the backlog.
      CHECK(client.read_all().empty());
      taken.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
  }
  CHECK(wait_until([&] { return status_of(request(bench.port(), "GET /health HTTP/1.1")) == 200; },
                   std::chrono::seconds(20)));
}

TEST_CASE("the port outlives the exhaustion of file descriptors") {
  const auto result = run_process({.argv = {program_path(), "[.flood]"}});
  REQUIRE(result);
  INFO(result->out << result->err);
  CHECK(result->ok());
  CHECK(result->out.find("All tests passed") != std::string::npos);
  CHECK(result->err.find("out of file descriptors") != std::string::npos);
}

}  // namespace
}  // namespace det
