#include "master/http/events.h"

#include <catch2/catch.hpp>

#include "bench.h"
#include "common/base/wait.h"

namespace det {
namespace {

using loop::Change;
using test::Bench;
using test::Client;
using test::status_of;

std::string subscribe(const std::string& token, const std::string& more = "") {
  return "GET /api/v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + token + "\r\n" + more + "\r\n";
}

/// Subscribes and receives a first event: all that are published next arrive within one tick.
void begin_tick(Bench& bench, Client& client) {
  client.send(subscribe("good"));
  REQUIRE(client.read_until("retry:").find("text/event-stream") != std::string::npos);
  bench.hub().publish({.kind = Change::Kind::kAgent, .name = "first"});
  REQUIRE(client.read_until("first").find("first") != std::string::npos);
}

TEST_CASE("an event carries the changed object only") {
  const loop::Event event{7,
                          {.kind = Change::Kind::kTrial,
                           .experiment = ExperimentId(1),
                           .trial = TrialId(2),
                           .name = "ACTIVE",
                           .steps_completed = 40,
                           .progress = 0.5}};
  CHECK(http::event_text(event) ==
        "id: 7\nevent: trial\ndata: {\"experimentId\":1,\"trialId\":2,\"batches\":40,"
        "\"state\":\"STATE_ACTIVE\",\"progress\":0.5}\n\n");
}

TEST_CASE("a change that affects the queue is also sent as a job event with the same id") {
  const loop::Event event{
      8, {.kind = Change::Kind::kExperiment, .experiment = ExperimentId(1), .name = "ACTIVE"}};
  CHECK(http::event_text(event) ==
        "id: 8\nevent: experiment\ndata: {\"experimentId\":1,\"state\":\"STATE_ACTIVE\",\"progress\":0.0}\n\n"
        "event: job\ndata: {\"experimentId\":1}\n\n");
}

TEST_CASE("an event of an edit tells no state, and a state in quick succession does not replace it") {
  CHECK(http::event_text({9, {.kind = Change::Kind::kExperiment, .experiment = ExperimentId(1)}}) ==
        "id: 9\nevent: experiment\ndata: {\"experimentId\":1}\n\n"
        "event: job\ndata: {\"experimentId\":1}\n\n");
  Bench bench;
  Client client(bench.port());
  begin_tick(bench, client);
  bench.hub().publish({.kind = Change::Kind::kExperiment, .experiment = ExperimentId(1)});
  bench.hub().publish({.kind = Change::Kind::kExperiment, .experiment = ExperimentId(1), .name = "ACTIVE"});
  bench.hub().publish({.kind = Change::Kind::kAgent, .name = "last"});
  const std::string seen = client.read_until("last");
  CHECK(seen.find("event: experiment\ndata: {\"experimentId\":1}") != seen.npos);
  CHECK(seen.find("STATE_ACTIVE") != seen.npos);
}

TEST_CASE("an event says when its state was reported before, unless it replaces one with a new state") {
  Change progress{
      .kind = Change::Kind::kExperiment, .experiment = ExperimentId(1), .name = "ACTIVE", .same_state = true};
  CHECK(http::event_text({9, progress}).find("\"sameState\":true") != std::string::npos);
  Bench bench;
  Client client(bench.port());
  begin_tick(bench, client);
  Change begin = progress;
  begin.same_state = false;
  bench.hub().publish(begin);
  bench.hub().publish(progress);
  progress.experiment = ExperimentId(2);
  bench.hub().publish(progress);
  bench.hub().publish({.kind = Change::Kind::kAgent, .name = "last"});
  const std::string seen = client.read_until("last");
  const std::string state = ",\"state\":\"STATE_ACTIVE\",\"progress\":0.0";
  CHECK(seen.find("{\"experimentId\":1" + state + "}") != seen.npos);
  CHECK(seen.find("{\"experimentId\":2" + state + ",\"sameState\":true}") != seen.npos);
}

TEST_CASE("the event stream requires a login") {
  Bench bench;
  Client client(bench.port());
  client.send(subscribe("bad"));
  CHECK(status_of(client.read_until("not logged in")) == 401);
}

TEST_CASE("a stream and a reply name the last event that came before them") {
  Bench bench;
  const std::string before = std::to_string(bench.hub().last());
  Client client(bench.port());
  client.send(subscribe("good"));
  CHECK(client.read_until("retry:").find("id: " + before + "\n") != std::string::npos);
  Client reader(bench.port());
  reader.send("GET /api/v1/me HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\n\r\n");
  CHECK(reader.read_until("\r\n\r\n").find("Det-Last-Event: " + before + "\r\n") != std::string::npos);
}

TEST_CASE("a reconnecting subscriber receives the events it missed") {
  Bench bench;
  Client first(bench.port());
  first.send(subscribe("good"));
  REQUIRE(first.read_until("retry:").find("text/event-stream") != std::string::npos);
  // The subscription starts after the first bytes have been sent.
  CHECK(wait_until(
      [&] {
        bench.hub().publish(
            {.kind = Change::Kind::kExperiment, .experiment = ExperimentId(1), .name = "ACTIVE"});
        return first.read_until("experimentId\":1", 1).find("experimentId\":1") != std::string::npos;
      },
      std::chrono::seconds(10)));
  const std::string seen = first.read_until("\n\n");
  const std::size_t at = seen.find("id: ") + 4;
  const std::string id = seen.substr(at, seen.find('\n', at) - at);
  bench.hub().publish(
      {.kind = Change::Kind::kCheckpoint, .experiment = ExperimentId(2), .trial = TrialId(5), .name = "u-u"});
  Client second(bench.port());
  second.send(subscribe("good", "Last-Event-ID: " + id + "\r\n"));
  const std::string resumed = second.read_until("u-u");
  CHECK(resumed.find("event: checkpoint") != std::string::npos);
  CHECK(resumed.find("\"uuid\":\"u-u\"") != std::string::npos);
}

TEST_CASE("changes of one object in quick succession are sent as few events, the last state included") {
  Bench bench;
  Client client(bench.port());
  client.send(subscribe("good"));
  REQUIRE(client.read_until("retry:").find("text/event-stream") != std::string::npos);
  for (int step = 1; step <= 200; ++step) {
    bench.hub().publish({.kind = Change::Kind::kMetrics,
                         .experiment = ExperimentId(1),
                         .trial = TrialId(2),
                         .name = "training",
                         .steps_completed = step});
  }
  const std::string seen = client.read_until("\"batches\":200}");
  CHECK(seen.find("\"batches\":200}") != std::string::npos);
  std::size_t events = 0;
  for (std::size_t at = seen.find("event: metrics"); at != seen.npos;
       at = seen.find("event: metrics", at + 1))
    ++events;
  CHECK(events < 20);
}

TEST_CASE("the event stream is compressed for clients that decode gzip, each event readable at once") {
  Bench bench;
  Client client(bench.port());
  client.send(subscribe("good", "Accept-Encoding: gzip, br\r\n"));
  const std::string head = client.read_until("\r\n\r\n");
  CHECK(head.find("Content-Encoding: gzip") != std::string::npos);
  CHECK(head.find("retry:") == std::string::npos);
}

TEST_CASE("reconnecting after too long a break sends a reset") {
  Bench bench;
  Client client(bench.port());
  client.send(subscribe("good", "Last-Event-ID: 12\r\n"));
  CHECK(client.read_until("event: reset").find("event: reset") != std::string::npos);
}

TEST_CASE("the event stream contains only visible commands, logs and experiments") {
  Bench bench;
  Client client(bench.port());
  client.send(subscribe("narrow"));
  REQUIRE(client.read_until("retry:").find("text/event-stream") != std::string::npos);
  const auto publish = [&] {
    for (const char* task : {"hidden", "seen"}) {
      bench.hub().publish({.kind = Change::Kind::kCommand, .task = TaskId(task)});
      bench.hub().publish({.kind = Change::Kind::kLogs, .task = TaskId(task)});
    }
    for (const int id : {2, 1})
      bench.hub().publish(
          {.kind = Change::Kind::kExperiment, .experiment = ExperimentId(id), .name = "ACTIVE"});
  };
  CHECK(wait_until(
      [&] {
        publish();
        return client.read_until("\"experimentId\":1", 1).find("\"experimentId\":1") != std::string::npos;
      },
      std::chrono::seconds(10)));
  const std::string told = client.read_until("\n\n");
  CHECK(told.find("event: command\ndata: {\"taskId\":\"seen\"}") != std::string::npos);
  CHECK(told.find("event: logs\ndata: {\"taskId\":\"seen\"}") != std::string::npos);
  CHECK(told.find("hidden") == std::string::npos);
  CHECK(told.find("\"experimentId\":2") == std::string::npos);
}

}  // namespace
}  // namespace det
