// Follows events through the master's real public port, over plain HTTP and TLS.
#include "cli/output/event_stream.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "bench.h"
#include "common/base/files.h"
#include "common/base/wait.h"
#include "common/crypto/certificates.h"

namespace det::cli::test {
namespace {

using det::test::Bench;
using loop::Change;
using namespace std::chrono_literals;

/// Sets an environment variable for the duration of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* const name_;
};

struct Pki {
  Identity authority = make_authority("Test", 24h).value();
  Identity server = issue_server(authority, {"localhost", "127.0.0.1"}, 24h).value();
  TemporaryDirectory dir = TemporaryDirectory::create("det-events").value();
  std::string ca = dir.path() + "/ca.pem";
  Pki() {
    // The server of this process writes to clients that have closed, as in the master.
    ::signal(SIGPIPE, SIG_IGN);
    REQUIRE(write_file_atomic(ca, authority.certificate));
  }
  http::SiteOptions options() const {
    http::SiteOptions options;
    options.tls =
        http::make_tls_server(server.certificate + authority.certificate, server.key, authority.certificate)
            .value();
    return options;
  }
};

Client client_of(const Bench& bench, bool tls, const std::string& token = "good") {
  Client client(Address{tls, "127.0.0.1", bench.port()});
  client.set_token(token);
  return client;
}

Change change_of(int experiment) {
  return {.kind = Change::Kind::kExperiment, .experiment = ExperimentId(experiment), .name = "ACTIVE"};
}

/// The experiment of the next event other than "reset"; 0 if none arrives within 5 s.
int next(EventStream& stream) {
  const auto events = stream.wait(5s);
  REQUIRE(events);
  for (const ChangeEvent& event : *events) {
    if (event.experiment != 0) return event.experiment;
  }
  return 0;
}

/// Publishes until an event arrives. The subscription is made only after the stream's first bytes are sent,
/// so a single event could be lost.
void hear(Bench& bench, EventStream& stream, int experiment) {
  REQUIRE(wait_until(
      [&] {
        bench.hub().publish(change_of(experiment));
        const auto events = stream.wait(200ms);
        return events && !events->empty();
      },
      10s));
}

void check_following(Bench& bench, bool tls) {
  const Client client = client_of(bench, tls);
  auto first = EventStream::open(client);
  REQUIRE(first);
  CHECK(first->last_id().empty());
  hear(bench, *first, 1);
  const auto begin = mono_now();
  const auto nothing = first->wait(50ms);
  REQUIRE(nothing);
  CHECK(mono_now() - begin < 3s);
  bench.hub().publish(change_of(2));
  CHECK(next(*first) == 2);
  // The stream resumes at the last id: events published in between come first.
  const std::string last = first->last_id();
  first = fail(Code::kUnavailable, "broken");
  bench.hub().publish(change_of(3));
  auto second = EventStream::open(client, last);
  REQUIRE(second);
  CHECK(next(*second) == 3);
}

TEST_CASE("events are followed over plain HTTP and resumed after a break") {
  Bench bench;
  check_following(bench, false);
}

TEST_CASE("events are followed over TLS with the trusted certificate and resumed after a break") {
  const Pki pki;
  Bench bench(pki.options());
  const Variable trusted("DET_MASTER_CERT_FILE", pki.ca);
  check_following(bench, true);
}

TEST_CASE("no token is sent to a master with an untrusted certificate") {
  const Pki pki, other;
  const Bench bench(pki.options());
  const auto opens = [&] { return EventStream::open(client_of(bench, true)).has_value(); };
  {
    const Variable trusted("DET_MASTER_CERT_FILE", other.ca);
    CHECK_FALSE(opens());
  }
  {
    const Variable trusted("DET_MASTER_CERT_FILE", pki.dir.path() + "/absent.pem");
    CHECK_FALSE(opens());
  }
  const Variable trusted("DET_MASTER_CERT_FILE", pki.ca);
  CHECK(opens());
  const Variable name("DET_MASTER_CERT_NAME", "elsewhere");
  CHECK_FALSE(opens());
  const Variable anybody("DET_MASTER_CERT_FILE", "noverify");
  CHECK(opens());
}

TEST_CASE("the expected certificate name can differ from the address") {
  const Pki pki;
  const Bench bench(pki.options());
  const Variable trusted("DET_MASTER_CERT_FILE", pki.ca);
  const Variable name("DET_MASTER_CERT_NAME", "localhost");
  CHECK(EventStream::open(client_of(bench, true)));
}

TEST_CASE("a response that is not an event stream is an error") {
  const Bench bench;
  const auto stranger = EventStream::open(client_of(bench, false, "bad"));
  REQUIRE(!stranger);
  CHECK(stranger.error().code == Code::kUnavailable);
  CHECK(stranger.error().message == "the master's events: 401 Unauthorized");
  // Plain HTTP to a TLS port.
  const Pki pki;
  const Bench tls(pki.options());
  CHECK(!EventStream::open(client_of(tls, false)));
}

TEST_CASE("a stream ends when its master stops") {
  auto bench = std::make_unique<Bench>();
  auto stream = EventStream::open(client_of(*bench, false));
  REQUIRE(stream);
  bench.reset();
  CHECK(wait_until([&] { return !stream->wait(100ms); }, 10s));
}

}  // namespace
}  // namespace det::cli::test
