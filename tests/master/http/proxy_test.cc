// Headers of proxied requests and replies, and the parser of replies.
#include <catch2/catch.hpp>

#include "bench.h"
#include "master/http/proxy_head.h"
#include "master/http/websocket.h"

namespace det::http {
namespace {

ProxyPath path_of(const std::string& text) {
  const auto path = parse_proxy_path(text);
  INFO(text);
  REQUIRE(path);
  return *path;
}

std::string value_of(const Response& response, const std::string& name) {
  for (const auto& [each, value] : response.headers)
    if (each == name) return value;
  return "";
}

TEST_CASE("a proxy path names a task, a port, a ticket and the rest") {
  const ProxyPath whole = path_of("/proxy/1.ab-c:8000/~tick/x/~y");
  CHECK(whole.service == "1.ab-c:8000");
  CHECK(whole.task == "1.ab-c");
  CHECK(whole.port == 8000);
  CHECK(whole.ticket == "tick");
  CHECK(whole.rest == "/x/~y");
  CHECK(whole.prefix() == "/proxy/1.ab-c:8000/~tick");
  const ProxyPath bare = path_of("/proxy/ab");
  CHECK((bare.task == "ab" && bare.port == 0 && bare.ticket.empty() && bare.rest.empty()));
  for (const char* bad : {"/proxy/", "/proxy//x", "/proxy/a:0/", "/proxy/a:70000/", "/proxy/a:8x/",
                          "/proxy/a:/", "/proxy/:80/", "/proxy/a%2f/", "/api/v1/me"}) {
    INFO(bad);
    CHECK_FALSE(parse_proxy_path(bad));
  }
}

TEST_CASE("a page gets a ticket after the check of its cookie, and replaces tickets of its own user only") {
  test::Bench bench({.trusted_proxies = Networks::parse({"127.0.0.0/8"}).value()});
  const auto ask = [&](const std::string& path, const std::string& headers) {
    return test::request(bench.port(), "GET " + path + " HTTP/1.1" + headers);
  };
  // The bench takes each address for a user.
  const auto open = [&](const std::string& user, const std::string& token) {
    return ask("/proxy/1.a/",
               "\r\nSec-Fetch-Mode: navigate\r\nX-Forwarded-For: " + user + "\r\nCookie: auth=" + token);
  };
  // The bench serves no tunnel: a valid ticket fails with another error.
  const auto is_valid = [&](const std::string& answer) {
    constexpr std::string_view kStart = "/proxy/1.a/~";
    const std::size_t at = answer.find(kStart);
    REQUIRE(at != std::string::npos);
    const std::size_t end = answer.find('/', at + kStart.size());
    return test::status_of(ask(answer.substr(at, end + 1 - at), "")) != 401;
  };
  CHECK(test::status_of(open("10.0.0.1", "bad")) == 401);
  const std::string other = open("10.0.0.2", "good"), first = open("10.0.0.1", "good");
  CHECK(test::status_of(first) == 302);
  CHECK(is_valid(first));
  for (int i = 0; i < 200; ++i) CHECK(test::status_of(open("10.0.0.1", "good")) == 302);
  CHECK_FALSE(is_valid(first));
  CHECK(is_valid(other));
}

TEST_CASE("a task gets no credentials and no headers of the connection") {
  const Request request{.method = "POST",
                        .path = "/proxy/t/x",
                        .query = "q=1",
                        .headers = {{"host", "master:8080"},
                                    {"authorization", "Bearer secret"},
                                    {"x-allocation-token", "Bearer secret"},
                                    {"grpc-metadata-x-allocation-token", "Bearer secret"},
                                    {"cookie", "a=1; auth=secret; b=2"},
                                    {"origin", "null"},
                                    {"referer", "http://master:8080/proxy/t/~secret/"},
                                    {"x-forwarded-for", "6.6.6.6"},
                                    {"connection", "close, x-own"},
                                    {"transfer-encoding", "chunked"},
                                    {"content-length", "999"},
                                    {"accept", "text/plain"}},
                        .body = "four",
                        .peer = "10.0.0.9",
                        .memory = nullptr};
  CHECK(forwarded_head(request, path_of("/proxy/t/~secret/x"), 8000, true, true) ==
        "POST /x?q=1 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\naccept: text/plain\r\ncookie: a=1; b=2\r\n"
        "x-forwarded-for: 10.0.0.9\r\nx-forwarded-proto: https\r\nx-forwarded-host: master:8080\r\n"
        "x-forwarded-prefix: /proxy/t/~secret\r\ncontent-length: 4\r\nconnection: close\r\n\r\n");
  CHECK(forwarded_head(request, path_of("/proxy/t/x"), 8000, false, true)
            .starts_with("POST /proxy/t/x?q=1 HTTP/1.1\r\n"));
}

TEST_CASE("a reply becomes a sandboxed document with cookies and redirections below its task") {
  Response reply{302,
                 {{"Set-Cookie", "auth=x"},
                  {"Set-Cookie", " auth =x"},
                  {"Set-Cookie", "own=1; Path=/; Domain=a; Secure"},
                  {"Location", "http://127.0.0.1:8000/next"},
                  {"Clear-Site-Data", "\"*\""},
                  {"Service-Worker-Allowed", "/"},
                  {"Access-Control-Allow-Origin", "http://evil"},
                  {"Content-Length", "5"},
                  {"Content-Security-Policy", "default-src *"},
                  {"Content-Type", "text/html"}},
                 ""};
  confine_reply(reply, path_of("/proxy/t/~k/"), 8000, true);
  CHECK(reply.headers ==
        Headers{{"Set-Cookie", "own=1; Path=/proxy/t/; HttpOnly; SameSite=Strict"},
                {"Location", "/proxy/t/~k/next"},
                {"Content-Security-Policy", "default-src *"},
                {"Content-Type", "text/html"},
                {"Content-Security-Policy",
                 "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"},
                {"Referrer-Policy", "no-referrer"},
                {"X-Content-Type-Options", "nosniff"},
                {"Access-Control-Allow-Origin", "*"},
                {"Cross-Origin-Resource-Policy", "cross-origin"}});
}

TEST_CASE("redirections of a program that knows its prefix keep the ticket") {
  const auto location = [](const std::string& target) {
    Response reply{302, {{"Location", target}}, ""};
    confine_reply(reply, path_of("/proxy/t/~k/"), 8000, false);
    return value_of(reply, "Location");
  };
  CHECK(location("/proxy/t/lab") == "/proxy/t/~k/lab");
  CHECK(location("http://localhost:8000/proxy/t/lab") == "/proxy/t/~k/lab");
  CHECK(location("lab") == "lab");
  CHECK(location("https://other/") == "https://other/");
}

TEST_CASE("a reply is decoded whatever its pieces are") {
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  const std::string counted = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nabcde";
  const std::string closed = "HTTP/1.0 200 OK\r\nX: y\r\n\r\nabcde";
  for (const std::string& bytes : {chunked, counted, closed}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
      INFO(bytes << step);
      ReplyReader reader(false);
      std::string body;
      for (std::size_t at = 0; at < bytes.size(); at += step)
        REQUIRE(reader.feed(std::string_view(bytes).substr(at, step), body));
      REQUIRE(reader.close());
      REQUIRE(reader.head() != nullptr);
      CHECK(value_of(*reader.head(), "X") == "y");
      CHECK(value_of(*reader.head(), "Transfer-Encoding").empty());
      CHECK(body == "abcde");
      CHECK(reader.done());
    }
  }
}

TEST_CASE("an upgraded reply keeps the bytes behind its header") {
  ReplyReader reader(false);
  std::string body;
  REQUIRE(
      reader.feed("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nA: b\r\n\r\n\x81\x01z", body));
  REQUIRE(reader.done());
  CHECK(reader.head()->status == 101);
  CHECK(body.empty());
  CHECK(reader.take_rest() == "\x81\x01z");
}

TEST_CASE("broken replies are errors") {
  std::string body;
  ReplyReader malformed(false);
  CHECK_FALSE(malformed.feed("SSH-2.0-OpenSSH\r\n\r\n", body));
  ReplyReader silent(false);
  CHECK_FALSE(silent.close());
  ReplyReader cut(false);
  REQUIRE(cut.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", body));
  CHECK_FALSE(cut.close());
  ReplyReader large(false);
  CHECK_FALSE(large.feed("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n", body));
}

/// A frame of a client, masked with "abcd".
std::string client_frame(unsigned first, const std::string& payload) {
  std::string frame(1, static_cast<char>(first));
  const std::size_t size = payload.size();
  if (size < 126) {
    frame += static_cast<char>(0x80U | size);
  } else if (size < 65536) {
    frame += {static_cast<char>(0x80U | 126U), static_cast<char>(size >> 8), static_cast<char>(size & 0xffU)};
  } else {
    frame += static_cast<char>(0x80U | 127U);
    for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(size >> shift & 0xffU);
  }
  frame += "abcd";
  for (std::size_t i = 0; i < size; ++i) frame += static_cast<char>(payload[i] ^ "abcd"[i % 4]);
  return frame;
}

TEST_CASE("the accept of a WebSocket is that of RFC 6455") {
  CHECK(websocket_accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST_CASE("frames of a client are decoded whatever their pieces are") {
  const std::string large(70'000, 'x'), medium(300, 'y');
  const std::string bytes = client_frame(0x02, "ab") + client_frame(0x89, "ping") + client_frame(0x80, "c") +
                            client_frame(0x82, medium) + client_frame(0x81, large) +
                            client_frame(0x88, "\x03\xe8");
  for (const std::size_t step : {std::size_t{1}, std::size_t{13}, bytes.size()}) {
    FrameReader reader;
    FrameReader::Frames all;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      const auto frames = reader.feed(std::string_view(bytes).substr(at, step));
      REQUIRE(frames);
      all.data += frames->data;
      all.replies += frames->replies;
      all.closed = all.closed || frames->closed;
    }
    CHECK(all.data == "abc" + medium + large);
    CHECK(all.replies == "\x8a\x04ping");
    CHECK(all.closed);
  }
}

TEST_CASE("frames that RFC 6455 forbids are refused") {
  const std::string unmasked("\x82\x01x", 3);
  const std::string huge = std::string("\x82\xff\0\0\0\0\0\x20\0\0", 10) + "abcd";
  for (const std::string& bytes :
       {unmasked, huge, client_frame(0xc2, "x"), client_frame(0x83, "x"), client_frame(0x8b, "x"),
        client_frame(0x09, "x"), client_frame(0x89, std::string(126, 'x'))}) {
    FrameReader reader;
    CHECK_FALSE(reader.feed(bytes));
  }
}

TEST_CASE("frames of the server have the shortest length that fits") {
  CHECK(data_frame("ab") ==
        "\x82\x02"
        "ab");
  CHECK(data_frame(std::string(126, 'x')).substr(0, 4) == std::string("\x82\x7e\0\x7e", 4));
  CHECK(data_frame(std::string(65536, 'x')).substr(0, 10) == std::string("\x82\x7f\0\0\0\0\0\x01\0\0", 10));
  CHECK(close_frame() == "\x88\x02\x03\xe8");
}

}  // namespace
}  // namespace det::http
