// Calls each declared HTTP route, and the paths beside them, with every kind of bad credential over real
// sockets. Needs a database.
#include <catch2/catch.hpp>

#include "bench.h"
#include "common/base/text.h"
#include "master/http/routes.h"
#include "server_bench.h"
#include "tests/master/db/database.h"
#include "tests/master/db/samples.h"

namespace det {
namespace {

using test::request;
using test::status_of;

constexpr const char* kCanary = "canary-4711";

struct World {
  test::Database database;
  api::Bench bench{database.connect()};
  loop::Workers json{2}, serial{1, 1 << 16};
  std::unique_ptr<http::Site> site = http::Site::open({}).value();

  World() {
    test::RunningStore store(test::open_store(database));
    store.write(
        {core::PutExperiment{test::plain_experiment(), true, kCanary}, core::PutTrial{test::plain_trial()}});
    db::Pool& pool = bench.pool;
    REQUIRE(pool.query("UPDATE experiments SET name = $1", kCanary));
    REQUIRE(pool.query(
        "INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources,"
        " metadata, size, reported) VALUES ('00000000-0000-4000-8000-000000000001', 1, 1, $1, 'a', 1, '{}', "
        "'{}', 1, now())",
        kCanary));
    REQUIRE(pool.query("INSERT INTO templates (name, text) VALUES ('net', $1)", kCanary));
    const UserId eve = db::create_user(pool, "eve", "x", false).value();
    REQUIRE(db::remove_grants(pool, {{eve, db::Role::kEditor, 1}}));
    REQUIRE(db::create_session(pool, eve, api::token_hash("stranger"), std::chrono::hours(1)));
    REQUIRE(db::create_session(pool, eve, api::token_hash("expired"), std::chrono::hours(-1)));
    site->start({.channel = bench.server.channel(),
                 .services = api::services(),
                 .hub = bench.hub,
                 .workers = json,
                 .serial = serial,
                 .admit =
                     [this](const http::Entrance& from, auto done) {
                       bench.server.admit(
                           from.method,
                           api::read_credentials(from.authorization, from.allocation_token, from.address),
                           from.large, std::move(done));
                     },
                 .grpc = [](UniqueFd) {},
                 .health = [] { return "{}"; }});
  }
  ~World() {
    site->close();
    site->stop();
    json.stop();
    serial.stop();
  }
};

struct Door {
  std::string verb, path;
  bool body = false;
};

/// All routes with parameters of existing objects, and the paths served beside the routes.
std::vector<Door> doors() {
  std::vector<Door> all = {{"GET", "/checkpoints/00000000-0000-4000-8000-000000000001", false},
                           {"GET", "/api/v1/events", false},
                           {"GET", "/metrics", false},
                           {"GET", "/prom/det-state-metrics", false},
                           {"GET", "/prom/det-http-sd-config", false}};
  const http::Routes routes(api::services());
  for (const http::Route& route : routes.all()) {
    std::string path;
    for (const std::string& segment : route.segments) {
      std::string value = segment;
      if (segment == "{checkpoint_uuid}")
        value = "00000000-0000-4000-8000-000000000001";
      else if (segment == "{template_name}")
        value = "net";
      else if (segment == "{username}")
        value = "ada";
      else if (segment == "{agent_id}")
        value = "a1";
      else if (segment == "{workload_type}")
        value = "EXPERIMENT";
      else if (segment.starts_with('{'))
        value = "1";
      path += "/" + value;
    }
    all.push_back({route.verb, path, !route.body.empty()});
  }
  return all;
}

bool is_public(const Door& door) {
  return door.path == "/api/v1/auth/login" || door.path == "/api/v1/master";
}

std::string ask(const World& world, const Door& door, const std::string& header) {
  return request(world.site->port(),
                 door.verb + " " + door.path + " HTTP/1.1" + (header.empty() ? "" : "\r\n" + header),
                 door.body ? "{}" : "");
}

TEST_CASE("invalid tokens are refused on every route, in a header and in a cookie") {
  World world;
  int asked = 0;
  for (const Door& door : doors()) {
    if (is_public(door)) continue;
    for (const char* header : {"", "Authorization: Bearer guessed", "Authorization: Bearer expired",
                               "Authorization: Basic eve", "Cookie: auth=expired\r\nX-Requested-With: x",
                               "Grpc-Metadata-x-allocation-token: Bearer guessed", "X-Det-Peer: 127.0.0.1"}) {
      const std::string answer = ask(world, door, header);
      INFO(door.verb << ' ' << door.path << " with " << header << '\n' << answer);
      CHECK(status_of(answer) == 401);
      CHECK(answer.find(kCanary) == std::string::npos);
      CHECK(answer.find("X-Content-Type-Options: nosniff") != std::string::npos);
      ++asked;
    }
  }
  CHECK(asked > 400);
}

TEST_CASE("a request with an invalid token is refused before its body arrives") {
  World world;
  int asked = 0;
  for (const Door& door : doors()) {
    if (!door.body || is_public(door)) continue;
    for (const char* header : {"Authorization: Bearer guessed", "Cookie: auth=expired\r\nX-Requested-With: x",
                               "Grpc-Metadata-x-allocation-token: Bearer guessed"}) {
      test::Client client(world.site->port());
      client.send(door.verb + " " + door.path + " HTTP/1.1\r\nHost: a\r\n" + header +
                  "\r\nContent-Length: 1000\r\n\r\n");
      INFO(door.verb << ' ' << door.path << " with " << header);
      CHECK(status_of(client.read_until("\r\n\r\n", 5)) == 401);
      ++asked;
    }
  }
  CHECK(asked > 100);
  // Without a route no body is read either.
  test::Client client(world.site->port());
  client.send("POST /api/v1/nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
  CHECK(status_of(client.read_until("\r\n\r\n", 5)) == 404);
}

TEST_CASE("a stranger gets no content from any route, and no route fails") {
  World world;
  for (const Door& door : doors()) {
    if (door.path == "/api/v1/events" || door.path == "/api/v1/auth/logout") continue;
    const std::string answer = ask(world, door, "Authorization: Bearer stranger");
    INFO(door.verb << ' ' << door.path << '\n' << answer);
    CHECK(answer.find(kCanary) == std::string::npos);
    const int status = status_of(answer);
    CHECK(status >= 200);
    CHECK(status < 500);
  }
}

TEST_CASE("a change authorized only by the session cookie is refused on every route") {
  World world;
  for (const Door& door : doors()) {
    if (door.verb == "GET" || is_public(door)) continue;
    for (const char* header :
         {"Cookie: auth=stranger", "Cookie: auth=stranger\r\nOrigin: http://evil.example"}) {
      const std::string answer = ask(world, door, header);
      INFO(door.verb << ' ' << door.path << '\n' << answer);
      CHECK(status_of(answer) == 403);
    }
  }
}

TEST_CASE("the event stream of a stranger omits invisible objects") {
  World world;
  test::Client client(world.site->port());
  client.send("GET /api/v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer stranger\r\n\r\n");
  REQUIRE(client.read_until("retry:").find("text/event-stream") != std::string::npos);
  std::string heard;
  // Agent changes are visible to all users. When one arrives, the experiment change before it has been
  // filtered out.
  for (int i = 0; i < 100 && heard.find("agent") == std::string::npos; ++i) {
    world.bench.hub.publish(
        {.kind = loop::Change::Kind::kExperiment, .experiment = ExperimentId(1), .name = kCanary});
    world.bench.hub.publish({.kind = loop::Change::Kind::kAgent, .name = "a1"});
    heard = client.read_until("event: agent", 1);
  }
  CHECK(heard.find("event: agent") != std::string::npos);
  CHECK(heard.find(kCanary) == std::string::npos);
}

}  // namespace
}  // namespace det
