#include "common/crypto/certificates.h"

#include <openssl/x509_vfy.h>

#include <catch2/catch.hpp>

#include "common/crypto/openssl.h"
#include "common/crypto/peer.h"

namespace det {
namespace {

constexpr Duration kDay = std::chrono::hours(24);

Identity authority() {
  auto made = make_authority("Test", kDay);
  REQUIRE(made);
  return *made;
}

/// OpenSSL's own check of a certificate, with one trusted authority.
bool is_verified(const std::string& authority, const std::string& pem) {
  using namespace openssl;
  const Certificate anchor = read_next(reader(authority).get()), subject = read_next(reader(pem).get());
  const std::unique_ptr<X509_STORE, ReleaseWith<X509_STORE_free>> store(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, ReleaseWith<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  return anchor && subject && X509_STORE_add_cert(store.get(), anchor.get()) == 1 &&
         X509_STORE_CTX_init(context.get(), store.get(), subject.get(), nullptr) == 1 &&
         X509_verify_cert(context.get()) == 1;
}

TEST_CASE("an authority verifies only the certificates it signed") {
  const Identity ours = authority(), theirs = authority();
  const auto server = issue_server(ours, {"localhost", "127.0.0.1", "::1"}, kDay);
  REQUIRE(server);
  CHECK(is_verified(ours.certificate, server->certificate));
  CHECK_FALSE(is_verified(theirs.certificate, server->certificate));
  CHECK_FALSE(is_verified(server->certificate, server->certificate));
  CHECK_FALSE(is_verified("", server->certificate));
}

TEST_CASE("an expired certificate is not verified") {
  const Identity ours = authority();
  const auto server = issue_server(ours, {"localhost"}, -std::chrono::seconds(1));
  REQUIRE(server);
  CHECK_FALSE(is_verified(ours.certificate, server->certificate));
}

TEST_CASE("a client certificate has the name given by the signer and the key of the request") {
  const Identity ours = authority();
  const auto key = make_private_key();
  REQUIRE(key);
  const auto request = make_request(*key, "what-it-claims");
  REQUIRE(request);
  const auto signed_one = sign_client(ours, *request, "a1", 30 * kDay);
  REQUIRE(signed_one);
  CHECK(is_verified(ours.certificate, *signed_one));
  const auto facts = read_certificate(*signed_one);
  REQUIRE(facts);
  CHECK(facts->subject == "a1");
  CHECK(facts->fingerprint.size() == 64);
  const std::int64_t left = facts->expires.micros - wall_now().micros;
  CHECK(left > Duration(29 * kDay).count());
  CHECK(left <= Duration(30 * kDay).count());
  const auto again = make_request(*key, "x");
  REQUIRE(again);
  CHECK(request_key_digest(*again) == request_key_digest(*request));
}

TEST_CASE("names longer than a certificate allows are truncated") {
  const Identity ours = authority();
  const auto request = make_request(make_private_key().value(), "x");
  REQUIRE(request);
  const auto made = sign_client(ours, *request, std::string(128, 'a'), kDay);
  REQUIRE(made);
  CHECK(read_certificate(*made)->subject == std::string(64, 'a'));
}

TEST_CASE("a modified signing request is refused") {
  const Identity ours = authority();
  auto request = make_request(make_private_key().value(), "a1").value();
  const std::size_t middle = request.size() / 2;
  request[middle] = request[middle] == 'A' ? 'B' : 'A';
  for (const std::string& text : {request, std::string("nonsense"), std::string(), ours.certificate}) {
    const auto made = sign_client(ours, text, "a1", kDay);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Code::kInvalidArgument);
  }
}

TEST_CASE("an invalid host name cannot inject another name into a certificate") {
  const Identity ours = authority();
  for (const char* name : {"a,DNS:b", "a b", "a\nb", "", "https://a"}) {
    INFO(name);
    const auto made = issue_server(ours, {name}, kDay);
    REQUIRE_FALSE(made);
    CHECK(made.error().code == Code::kInvalidArgument);
  }
  CHECK_FALSE(issue_server(ours, {}, kDay));
}

TEST_CASE("a chain is split into its certificates") {
  const Identity ours = authority(), theirs = authority();
  const auto chain = split_chain(ours.certificate + "some words between\n" + theirs.certificate);
  REQUIRE(chain);
  CHECK(*chain == std::vector<std::string>{ours.certificate, theirs.certificate});
  CHECK_FALSE(split_chain("nothing"));
}

TEST_CASE("fingerprints are shown as upper-case hex pairs with colons") {
  CHECK(shown_fingerprint("0aff") == "0A:FF");
}

TEST_CASE("a peer name encodes address and certificate, and fits an abstract socket name") {
  for (const char* address : {"127.0.0.1", "::1", "2001:db8:1111:2222:3333:4444:5555:6666"}) {
    for (const std::string& certificate : {std::string(), std::string(64, 'a')}) {
      const Peer peer{
          .address = address, .certificate = certificate, .believed = !certificate.empty(), .tls = true};
      const std::string name = peer_name(peer);
      INFO(name);
      CHECK(name.size() <= 107);
      CHECK(name != peer_name(peer));
      const auto read = read_peer_name(name);
      REQUIRE(read);
      CHECK(read->address == address);
      CHECK(read->certificate == certificate);
      CHECK(read->believed == peer.believed);
      CHECK(read->tls);
    }
  }
  for (const char* name : {"", "det", "det.tb", "det.tb.x.y.1", "other.tb.abc..127.0.0.1"}) {
    INFO(name);
    CHECK_FALSE(read_peer_name(name));
  }
}

}  // namespace
}  // namespace det
