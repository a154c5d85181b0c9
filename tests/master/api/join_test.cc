// Join tokens and agent certificates, against PostgreSQL.
#include "master/api/accounts/join.h"

#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <optional>

#include "common/base/secret.h"
#include "common/client/calls.h"
#include "common/crypto/digest.h"
#include "common/crypto/peer.h"
#include "det/v1/agent.methods.h"
#include "det/v1/join.methods.h"
#include "master/db/accounts/join.h"
#include "server_bench.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det {
namespace {

using namespace std::chrono_literals;

struct World {
  test::Database database;
  db::Pool pool{database.connect(), 2};
  World() { test::open_store(database); }
  std::string token(const db::JoinToken& wish = {}, Duration lifetime = 1h) {
    static int number = 0;
    const std::string hash = "hash-" + std::to_string(++number);
    REQUIRE(db::create_join_token(pool, wish, hash, lifetime));
    return hash;
  }
};

db::AgentCertificate certificate(const std::string& agent, const std::string& key, Duration lifetime = 1h) {
  static int number = 0;
  return {.fingerprint = sha256_hex(std::to_string(++number)),
          .agent = AgentId(agent),
          .key_digest = key,
          .expires = {wall_now().micros + lifetime.count()}};
}

/// Returns std::nullopt on success.
std::optional<Code> code_of(const Status& status) {
  return status ? std::nullopt : std::optional(status.error().code);
}

TEST_CASE("a token admits as many agents as it allows, and no more") {
  World world;
  const std::string once = world.token(), twice = world.token({.uses_left = 2});
  CHECK(db::admit_agent(world.pool, once, certificate("a1", "k1")));
  CHECK(code_of(db::admit_agent(world.pool, once, certificate("a2", "k2"))) == Code::kUnauthenticated);
  CHECK(db::admit_agent(world.pool, twice, certificate("a3", "k3")));
  CHECK(db::admit_agent(world.pool, twice, certificate("a4", "k4")));
  CHECK(code_of(db::admit_agent(world.pool, twice, certificate("a5", "k5"))) == Code::kUnauthenticated);
  CHECK(db::list_join_tokens(world.pool)->empty());
}

TEST_CASE("an agent that repeats a join with the same key does not consume a use") {
  World world;
  const std::string token = world.token();
  for (int i = 0; i < 3; ++i) CHECK(db::admit_agent(world.pool, token, certificate("a1", "k1")));
  CHECK(code_of(db::admit_agent(world.pool, token, certificate("a1", "k2"))) == Code::kAlreadyExists);
}

TEST_CASE("unknown, expired, deleted and foreign tokens admit no agent") {
  World world;
  const std::string over = world.token({}, -1s), deleted = world.token(),
                    bound = world.token({.agent = "a1"});
  const auto listed = db::list_join_tokens(world.pool);
  REQUIRE(listed);
  REQUIRE(listed->size() == 2);
  CHECK(db::delete_join_token(world.pool, listed->front().id));
  CHECK(code_of(db::admit_agent(world.pool, "guess", certificate("a1", "k"))) == Code::kUnauthenticated);
  CHECK(code_of(db::admit_agent(world.pool, over, certificate("a1", "k"))) == Code::kUnauthenticated);
  CHECK(code_of(db::admit_agent(world.pool, deleted, certificate("a1", "k"))) == Code::kUnauthenticated);
  CHECK(code_of(db::admit_agent(world.pool, bound, certificate("a2", "k"))) == Code::kPermissionDenied);
  CHECK(db::admit_agent(world.pool, bound, certificate("a1", "k")));
  CHECK(code_of(db::delete_join_token(world.pool, 4711)) == Code::kNotFound);
}

TEST_CASE("a name belongs to one machine until it is revoked") {
  World world;
  const auto first = certificate("a1", "k1");
  CHECK(db::admit_agent(world.pool, world.token({.pool = "gpu"}), first));
  CHECK(db::find_agent_certificate(world.pool, first.fingerprint)->pool == "gpu");
  CHECK(code_of(db::admit_agent(world.pool, world.token(), certificate("a1", "k2"))) == Code::kAlreadyExists);
  CHECK(db::revoke_agent(world.pool, AgentId("a1")));
  CHECK(db::find_agent_certificate(world.pool, first.fingerprint).error().code == Code::kPermissionDenied);
  CHECK(code_of(db::renew_agent(world.pool, certificate("a1", "k1"))) == Code::kPermissionDenied);
  const auto second = certificate("a1", "k2");
  CHECK(db::admit_agent(world.pool, world.token(), second));
  CHECK(db::find_agent_certificate(world.pool, second.fingerprint)->agent == AgentId("a1"));
  CHECK(db::find_agent_certificate(world.pool, first.fingerprint).error().code == Code::kPermissionDenied);
}

TEST_CASE("after renewal the previous certificate stays valid for open connections with the same key only") {
  World world;
  const auto old = certificate("a1", "k1");
  CHECK(db::admit_agent(world.pool, world.token({.pool = "gpu"}), old));
  CHECK(code_of(db::renew_agent(world.pool, certificate("a1", "k2"))) == Code::kPermissionDenied);
  CHECK(code_of(db::renew_agent(world.pool, certificate("a2", "k1"))) == Code::kPermissionDenied);
  const auto fresh = certificate("a1", "k1");
  CHECK(db::renew_agent(world.pool, fresh));
  REQUIRE(world.pool.query("UPDATE agent_certificates SET expires = now() WHERE fingerprint = $1",
                           old.fingerprint));
  CHECK(db::find_agent_certificate(world.pool, old.fingerprint));
  CHECK(db::find_agent_certificate(world.pool, fresh.fingerprint)->pool == "gpu");
  REQUIRE(world.pool.query("UPDATE agent_certificates SET expires = now()"));
  CHECK(db::find_agent_certificate(world.pool, fresh.fingerprint).error().code == Code::kPermissionDenied);
}

TEST_CASE("an agent is identified by its certificate, which TLS makes mandatory") {
  World world;
  const auto known = certificate("a1", "k1");
  CHECK(db::admit_agent(world.pool, world.token(), known));
  const auto code = [&](const Peer& peer, const std::string& token = "") {
    const auto caller = api::authorize_agent({peer, token}, world.pool);
    return caller ? std::nullopt : std::optional(caller.error().code);
  };
  CHECK(code({.address = "127.0.0.1", .tls = true}) == Code::kPermissionDenied);
  CHECK(code({.certificate = known.fingerprint, .tls = true}) == Code::kPermissionDenied);
  CHECK(code({.certificate = std::string(64, '0'), .believed = true, .tls = true}) ==
        Code::kPermissionDenied);
  const auto caller = api::authorize_agent(
      {{.certificate = known.fingerprint, .believed = true, .tls = true}, ""}, world.pool);
  REQUIRE(caller);
  CHECK(caller->agent == AgentId("a1"));
  CHECK(caller->check_name("a1"));
  CHECK_FALSE(caller->check_name("a2"));
}

TEST_CASE("an agent without TLS is identified by its token, from loopback only") {
  World world;
  const std::string secret = random_token(), fingerprint = api::agent_token_fingerprint(secret);
  const db::AgentCertificate row{.fingerprint = fingerprint,
                                 .agent = AgentId("a1"),
                                 .key_digest = fingerprint,
                                 .expires = {wall_now().micros + Duration(1h).count()}};
  CHECK(db::admit_local_agent(world.pool, row));
  CHECK(db::admit_local_agent(world.pool, row));
  const auto code = [&](const std::string& address, const std::string& token) {
    const auto caller = api::authorize_agent({{.address = address}, token}, world.pool);
    return caller ? std::nullopt : std::optional(caller.error().code);
  };
  CHECK_FALSE(code("127.0.0.1", secret));
  CHECK_FALSE(code("::1", secret));
  CHECK(code("127.0.0.1", "") == Code::kPermissionDenied);
  CHECK(code("127.0.0.1", random_token()) == Code::kPermissionDenied);
  CHECK(code("127.0.0.1", fingerprint) == Code::kPermissionDenied);
  CHECK(code("10.0.0.7", secret) == Code::kPermissionDenied);
  const auto caller = api::authorize_agent({{.address = "127.0.0.1"}, secret}, world.pool);
  REQUIRE(caller);
  CHECK(caller->agent == AgentId("a1"));
  CHECK_FALSE(caller->check_name("a2"));
  // A token of the master's machine does not take the id of an agent that joined with a token of an admin.
  CHECK(db::admit_agent(world.pool, world.token(), certificate("far", "k1")));
  db::AgentCertificate foreign = row;
  foreign.agent = AgentId("far");
  foreign.fingerprint = foreign.key_digest = api::agent_token_fingerprint(random_token());
  CHECK(code_of(db::admit_local_agent(world.pool, foreign)) == Code::kAlreadyExists);
  CHECK(db::revoke_agent(world.pool, AgentId("a1")));
  CHECK(code("127.0.0.1", secret) == Code::kPermissionDenied);
  // A revoked secret cannot be admitted again.
  CHECK(db::admit_local_agent(world.pool, row));
  CHECK(code("127.0.0.1", secret) == Code::kPermissionDenied);
}

/// Calls Join of a master without TLS.
grpc::Status join_plain(api::Bench& bench, const std::string& token, const std::string& secret,
                        const std::string& address = "127.0.0.1") {
  v1::JoinRequest request;
  request.set_token(token);
  request.set_agent_id("a1");
  request.set_secret(secret);
  v1::JoinResponse response;
  grpc::ClientContext context;
  context.AddMetadata("x-det-peer", address);
  return wire::call(bench.server.channel(), v1::JoinService::Join, context, request, response);
}

TEST_CASE("without TLS an agent on loopback joins with a secret of its own") {
  World world;
  api::Bench bench(world.database.connect());
  const std::string local = "det_j_" + random_token();
  bench.settings.local_join_hash = api::token_hash(local);
  CHECK(join_plain(bench, local, random_token()).ok());
  CHECK(join_plain(bench, local, random_token()).ok());
  CHECK(join_plain(bench, local, "short").error_code() == grpc::INVALID_ARGUMENT);
  CHECK(join_plain(bench, "det_j_guess", random_token()).error_code() == grpc::UNAUTHENTICATED);
  CHECK(join_plain(bench, "", random_token()).error_code() == grpc::UNAUTHENTICATED);
  CHECK(join_plain(bench, local, random_token(), "10.0.0.7").error_code() == grpc::PERMISSION_DENIED);
  // An unknown token is refused before the request is looked at.
  CHECK(join_plain(bench, "det_j_guess", "short").error_code() == grpc::UNAUTHENTICATED);
  CHECK(world.database.number("SELECT count(*) FROM agent_certificates") == 2);
}

/// Connects like the TLS tunnel does for an agent that presented this certificate.
std::shared_ptr<grpc::Channel> connect_as(api::Bench& bench, const std::string& fingerprint) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text =
      peer_name({.address = "10.0.0.7", .certificate = fingerprint, .believed = true, .tls = true});
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  REQUIRE(::bind(ends[1], reinterpret_cast<const sockaddr*>(&name),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size())) == 0);
  bench.server.take(UniqueFd(ends[0]));
  return grpc::CreateInsecureChannelFromFd("master", ends[1]);
}

TEST_CASE("an agent ships logs only of allocations that it holds or held") {
  World world;
  {
    test::RunningStore store(test::open_store(world.database));
    core::Allocation mine = test::Sampler(1).allocation("1.task.1", TrialId(1));
    mine.parts.assign(1, {});
    mine.parts[0].agent = AgentId("a1");
    store.write({core::PutExperiment{test::plain_experiment(), true}, core::PutTrial{test::plain_trial()},
                 core::PutAllocation{mine}});
  }
  const auto first = certificate("a1", "k1"), second = certificate("a2", "k2");
  REQUIRE(db::admit_agent(world.pool, world.token(), first));
  REQUIRE(db::admit_agent(world.pool, world.token(), second));
  api::Bench bench(world.database.connect());
  const auto ship = [&](const db::AgentCertificate& as, const std::string& allocation) {
    v1::ShipLogsRequest request;
    request.set_agent_id(as.agent.value);
    request.set_allocation_id(allocation);
    request.set_first_line(1);
    request.add_lines()->set_text("hello");
    v1::ShipLogsResponse response;
    grpc::ClientContext context;
    return wire::call(connect_as(bench, as.fingerprint), v1::AgentService::ShipLogs, context, request,
                      response)
        .error_code();
  };
  // Logs of foreign allocations are refused permanently: the agent must not retry them.
  CHECK(ship(second, "1.task.1") == grpc::NOT_FOUND);
  CHECK(ship(first, "7.other.1") == grpc::NOT_FOUND);
  CHECK(world.database.number("SELECT count(*) FROM task_logs") == 0);
  CHECK(ship(first, "1.task.1") == grpc::OK);
  CHECK(world.database.number("SELECT count(*) FROM task_logs") == 1);
  REQUIRE(world.pool.query("UPDATE allocations SET state = 'TERMINATED', ended = now()"));
  CHECK(ship(first, "1.task.1") == grpc::OK);
  CHECK(ship(second, "1.task.1") == grpc::NOT_FOUND);
}

}  // namespace
}  // namespace det
