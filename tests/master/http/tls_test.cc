// TLS on the public port, with the clients of OpenSSL and gRPC on real sockets.
#include <grpcpp/grpcpp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <catch2/catch.hpp>

#include "bench.h"
#include "common/base/files.h"
#include "common/base/wait.h"
#include "common/client/channel.h"
#include "common/crypto/certificates.h"
#include "common/crypto/tls_probe.h"

namespace det {
namespace {

using test::Client;
using test::status_of;
using namespace std::chrono_literals;

struct Pki {
  Identity authority = make_authority("Test", 24h).value();
  Identity server = issue_server(authority, {"localhost", "127.0.0.1"}, 24h).value();
  TemporaryDirectory dir = TemporaryDirectory::create("det-tls").value();
  std::string ca = dir.path() + "/ca.pem";
  Pki() { REQUIRE(write_file_atomic(ca, authority.certificate)); }
  http::SiteOptions options() const {
    http::SiteOptions options;
    options.tls =
        http::make_tls_server(server.certificate + authority.certificate, server.key, authority.certificate)
            .value();
    return options;
  }
};

/// Sends an HTTPS request with OpenSSL, without verifying the server's certificate. Returns the whole
/// response. `most` is the newest TLS version that the client offers.
std::string https(int port, const std::string& request, int most = TLS1_3_VERSION,
                  const Identity* own = nullptr) {
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context, most);
  SSL_CTX_set_cipher_list(context, "DEFAULT@SECLEVEL=0");
  if (own) {
    BIO* bio = BIO_new_mem_buf(own->certificate.data(), static_cast<int>(own->certificate.size()));
    X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context, certificate);
    X509_free(certificate);
    BIO_free(bio);
    bio = BIO_new_mem_buf(own->key.data(), static_cast<int>(own->key.size()));
    EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_PrivateKey(context, key);
    EVP_PKEY_free(key);
    BIO_free(bio);
  }
  BIO* const bio = BIO_new_ssl_connect(context);
  BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(port)).c_str());
  std::string answer;
  if (BIO_write(bio, request.data(), static_cast<int>(request.size())) > 0) {
    char piece[8192];
    for (int count = 0; (count = BIO_read(bio, piece, sizeof piece)) > 0;)
      answer.append(piece, static_cast<std::size_t>(count));
  }
  BIO_free_all(bio);
  SSL_CTX_free(context);
  return answer;
}

constexpr const char* kHealth = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST_CASE("HTTPS requires TLS 1.2 and sends HSTS") {
  const Pki pki;
  const test::Bench bench(pki.options());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const std::string answer = https(bench.port(), kHealth, version);
    CHECK(status_of(answer) == 200);
    CHECK(answer.find("Strict-Transport-Security: max-age=") != std::string::npos);
  }
  CHECK(https(bench.port(), kHealth, TLS1_1_VERSION).empty());
}

TEST_CASE("the session cookie is Secure over TLS") {
  const Pki pki;
  const test::Bench bench(pki.options());
  const std::string login =
      "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
      "Content-Length: 37\r\n\r\n{\"username\":\"ada\",\"password\":\"right\"}";
  CHECK(https(bench.port(), login).find("SameSite=Strict; Secure;") != std::string::npos);
}

TEST_CASE("gRPC on the same port requires the right authority and server name") {
  const Pki pki;
  const test::Bench bench(pki.options());
  // The bench closes the connections that arrive: the test counts arrivals only.
  const auto arrives = [&](const MasterTrust& trust) {
    grpc::ChannelArguments arguments;
    const auto credentials = channel_credentials(trust, arguments).value();
    const auto channel =
        grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(bench.port()), credentials, arguments);
    const int before = bench.grpc_connections();
    channel->GetState(true);
    return wait_until([&] { return bench.grpc_connections() > before; }, 2s);
  };
  const Pki other;
  CHECK_FALSE(arrives({.tls = true, .cert_file = other.ca}));
  CHECK_FALSE(arrives({.tls = true, .cert_file = ""}));
  CHECK_FALSE(arrives({.tls = true, .cert_file = pki.ca, .cert_name = "elsewhere"}));
  CHECK_FALSE(arrives({.tls = false}));
  CHECK(arrives({.tls = true, .cert_file = pki.ca}));
  CHECK(arrives({.tls = true, .cert_file = "noverify"}));
  CHECK(arrives({.tls = true, .cert_file = pki.ca, .cert_name = "localhost"}));
}

TEST_CASE("plain HTTP and HTTP/2 to a TLS port get an error message") {
  const Pki pki;
  const test::Bench bench(pki.options());
  for (const std::string& bytes : {std::string(kHealth), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    Client client(bench.port());
    client.send(bytes);
    const std::string answer = client.read_all();
    CHECK(answer.find("this port speaks TLS only") != std::string::npos);
    CHECK(answer.find("\"up\"") == std::string::npos);
  }
  CHECK(bench.grpc_connections() == 0);
}

TEST_CASE("unfinished handshakes and invalid bytes close the connection") {
  const Pki pki;
  const test::Bench bench(pki.options());
  Client silent(bench.port());
  silent.send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  Client nonsense(bench.port());
  nonsense.send("\x16" + std::string(4000, 'x'));
  CHECK(nonsense.read_all(3).find("still open") == std::string::npos);
  CHECK(silent.read_all(8).find("still open") == std::string::npos);
  CHECK(status_of(https(bench.port(), kHealth)) == 200);
}

TEST_CASE("large bodies pass, and a client may half-close first") {
  const Pki pki;
  const test::Bench bench(pki.options());
  const std::string body = "{\"config\":\"" + std::string(700'000, 'x') + "\"}";
  const std::string answer =
      https(bench.port(),
            "POST /api/v1/experiments HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            "Authorization: Bearer good\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  CHECK(status_of(answer) != 0);
}

TEST_CASE("a TLS probe returns the chain and the verification problem") {
  const Pki pki;
  const test::Bench bench(pki.options());
  const auto right = probe_tls("127.0.0.1", bench.port(), "localhost", pki.authority.certificate, 5s);
  REQUIRE(right);
  CHECK(right->problem == "");
  CHECK(right->chain.size() == 2);
  CHECK(right->chain.back() == pki.authority.certificate);
  CHECK(probe_tls("127.0.0.1", bench.port(), "elsewhere", pki.authority.certificate, 5s)->problem != "");
  CHECK(probe_tls("127.0.0.1", bench.port(), "localhost", "", 5s)->problem != "");
  const test::Bench plain;
  CHECK(probe_tls("127.0.0.1", plain.port(), "localhost", "", 5s).error().code == Code::kUnavailable);
}

TEST_CASE("an HTTP/2 flood over TLS is closed, and others are served meanwhile") {
  const Pki pki;
  const test::Bench bench(pki.options());
  std::string flood = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  // gRPC ignores PRIORITY frames without a limit.
  for (int i = 0; i < 1000; ++i) flood += std::string("\0\0\5\2\0\0\0\0\1xxxxx", 14);
  (void)https(bench.port(), flood);  // Returns only because the server closed the connection.
  CHECK(status_of(https(bench.port(), kHealth)) == 200);
}

TEST_CASE("a key that does not match the certificate is refused with the option's name") {
  const Pki pki, other;
  CHECK(http::make_tls_server(pki.server.certificate, other.server.key, pki.authority.certificate)
            .error()
            .message.find("tls.key") != std::string::npos);
  CHECK(
      http::make_tls_server("", pki.server.key, pki.authority.certificate).error().message.find("tls.cert") !=
      std::string::npos);
}

}  // namespace
}  // namespace det
