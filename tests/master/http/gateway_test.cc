// The JSON gateway: routes, parameters, bodies, streams, errors, the session cookie.
#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "common/archive/gzip.h"
#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "det/v1/checkpoint.pb.h"
#include "det/v1/cluster.pb.h"
#include "master/http/routes.h"
#include "master/http/transcode.h"

namespace det {
namespace {

using test::Bench;
using test::body_of;
using test::Client;
using test::request;
using test::status_of;

Json json_of(const std::string& answer) {
  auto json = parse_json(body_of(answer));
  INFO(answer);
  REQUIRE(json);
  return *json;
}

Json get(const Bench& bench, const std::string& target) {
  return json_of(request(bench.port(), "GET " + target + " HTTP/1.1"));
}

/// The request that the fake service received, as protobuf's debug text.
std::string asked(const Bench& bench, const std::string& query) {
  return get(bench, "/api/v1/experiments?" + query)["experiments"][0]["description"].get<std::string>();
}

TEST_CASE("path parameters reach their fields, and literal paths take precedence") {
  Bench bench;
  CHECK(get(bench, "/api/v1/experiments/7")["experiment"]["id"] == 7);
  CHECK(get(bench, "/api/v1/trials/time-series?trialIds=3&trial_ids=4")["trials"].size() == 2);
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments/seven HTTP/1.1")) == 400);
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments/99999999999 HTTP/1.1")) == 400);
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments/%2e%2e HTTP/1.1")) == 400);
}

TEST_CASE("query parameters: both spellings, repeated, enums, wrappers, escapes; unknown ones are ignored") {
  Bench bench;
  CHECK(asked(bench, "sortBy=SORT_BY_NAME&order_by=ORDER_BY_DESC") ==
        "sort_by: SORT_BY_NAME order_by: ORDER_BY_DESC");
  CHECK(asked(bench, "labels=a&labels=b+c&labels=%C3%A9%26") ==
        "labels: \"a\" labels: \"b c\" labels: \"\\303\\251&\"");
  CHECK(asked(bench, "states=STATE_ACTIVE&states=6") == "states: STATE_ACTIVE states: STATE_COMPLETED");
  CHECK(asked(bench, "archived=false") == "archived { }");
  CHECK(asked(bench, "archived=true&limit=-1") == "limit: -1 archived { value: true }");
  CHECK(asked(bench, "nonsense=1&a.b.c=2&pretty") == "");
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments?limit=x HTTP/1.1")) == 400);
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments?name=%zz HTTP/1.1")) == 400);
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments?name=%00 HTTP/1.1")) == 400);
  CHECK(status_of(request(bench.port(), "GET /api/v1/experiments?name=%ff HTTP/1.1")) == 400);
}

TEST_CASE("responses have camelCase names, default values, and 64-bit integers as strings") {
  Bench bench;
  const Json json = get(bench, "/api/v1/experiments/7")["experiment"];
  CHECK(json["numTrials"] == 0);
  CHECK(json["checkpointSize"] == "0");
  CHECK(json["state"] == "STATE_UNSPECIFIED");
  CHECK(json["labels"].is_array());
  // Unset messages are null, as clients of Determined AI expect. Unset optional scalars are absent.
  CHECK(json.contains("endTime"));
  CHECK(json["endTime"].is_null());
  CHECK(body_of(request(bench.port(), "GET /api/v1/experiments/7?pretty=true HTTP/1.1")).find("\n  ") !=
        std::string::npos);
}

TEST_CASE("JSON numbers have the shortest digits") {
  v1::GetExperimentResponse message;
  auto& fields = *message.mutable_experiment()->mutable_config()->mutable_fields();
  const auto text = [&](double value) {
    fields["x"].set_number_value(value);
    const std::string json = http::to_json_text(message, false);
    const std::size_t at = json.find("{\"x\":") + 5;
    return json.substr(at, json.find('}', at) - at);
  };
  CHECK(text(0.6561) == "0.6561");
  CHECK(text(0.1) == "0.1");
  CHECK(text(100000) == "100000");
  CHECK(text(1e-7) == "1e-07");
  CHECK(text(1e300) == "1e+300");
  CHECK(text(-2.5) == "-2.5");
  CHECK(text(std::numeric_limits<double>::quiet_NaN()) == "\"NaN\"");
}

TEST_CASE("fields that are not offered are refused by name") {
  Bench bench;
  const std::string post = "POST /api/v1/experiments HTTP/1.1";
  const auto refused = [&](const std::string& body) {
    const std::string answer = request(bench.port(), post, body);
    CHECK(status_of(answer) == 400);
    return json_of(answer)["error"]["error"].get<std::string>();
  };
  CHECK(refused(R"({"config":"x","nonsense":1})") == "body: nonsense: not offered; leave it out");
  CHECK(
      refused(R"({"config":"x","modelDefinition":[{"path":"a","inode":7}]})").find("modelDefinition.inode") !=
      std::string::npos);
}

TEST_CASE("a filter with a misspelt enumeration value is refused instead of ignored") {
  Bench bench;
  const std::string answer = request(bench.port(), "POST /api/v1/experiments/kill HTTP/1.1",
                                     R"({"filters":{"states":["STATE_PAUSD"]}})");
  CHECK(status_of(answer) == 400);
  CHECK(json_of(answer)["error"]["error"] == "body: filters.states: STATE_PAUSD: not offered; leave it out");
}

TEST_CASE("large replies are compressed for clients that decode gzip") {
  Bench bench;
  std::string target = "/api/v1/trials/time-series?trialIds=1";
  for (int trial = 2; trial <= 100; ++trial) target += "&trialIds=" + std::to_string(trial);
  const std::string plain = request(bench.port(), "GET " + target + " HTTP/1.1");
  CHECK(plain.find("Content-Encoding") == std::string::npos);
  const std::string packed = request(bench.port(), "GET " + target + " HTTP/1.1\r\nAccept-Encoding: gzip");
  CHECK(packed.find("Content-Encoding: gzip") != std::string::npos);
  const std::string bytes = body_of(packed);
  ByteSource source(bytes);
  std::string text;
  for (;;) {
    const auto piece = source.next();
    REQUIRE(piece);
    if (piece->empty()) break;
    text += *piece;
  }
  CHECK(text == body_of(plain));
  const std::string small =
      request(bench.port(), "GET /api/v1/experiments/404 HTTP/1.1\r\nAccept-Encoding: gzip");
  CHECK(small.find("Content-Encoding") == std::string::npos);
}

TEST_CASE("bodies are validated and accept both spellings of field names") {
  Bench bench;
  const std::string post = "POST /api/v1/experiments HTTP/1.1";
  CHECK(
      json_of(request(bench.port(), post,
                      R"({"config":"x","validate_only":true,"validateOnly":true,"unknown":[],"other":null})"))
          ["experiment"]["name"] == "x");
  // A field with a JSON name of its own, beside an unknown one that sets nothing.
  CHECK(status_of(request(bench.port(), post, R"({"config":"x","unmanaged":true,"unknown":[]})")) == 200);
  CHECK(status_of(request(bench.port(), post, "{")) == 400);
  CHECK(status_of(request(bench.port(), post, R"({"config":5})")) == 400);
  CHECK(status_of(request(bench.port(), post, "{\"config\":\"\xff\"}")) == 400);
  CHECK(status_of(request(bench.port(), post,
                          R"({"unknown":)" + std::string(40, '[') + std::string(40, ']') + "}")) == 400);
}

TEST_CASE("a whole context fits into one body") {
  Bench bench;
  const std::string content = to_base64(std::string(20 << 20, 'x'));
  const std::string body =
      R"({"config":"c","modelDefinition":[{"path":"a","content":")" + content + R"("}]})";
  CHECK(json_of(request(bench.port(), "POST /api/v1/experiments HTTP/1.1",
                        body))["experiment"]["checkpointSize"] == std::to_string(20 << 20));
}

TEST_CASE("errors have Determined's form") {
  Bench bench;
  const std::string answer = request(bench.port(), "GET /api/v1/experiments/404 HTTP/1.1");
  CHECK(status_of(answer) == 404);
  const Json error = json_of(answer)["error"];
  CHECK(error["code"] == 5);
  CHECK(error["reason"] == "NotFound");
  CHECK(error["error"] == "experiment 404 not found");
  CHECK(status_of(request(bench.port(), "GET /api/v1/nothing HTTP/1.1")) == 404);
  const std::string wrong_verb = request(bench.port(), "PUT /api/v1/experiments/7 HTTP/1.1");
  CHECK(status_of(wrong_verb) == 405);
  const std::size_t allow = wrong_verb.find("Allow: ");
  REQUIRE(allow != std::string::npos);
  CHECK(wrong_verb.substr(allow, wrong_verb.find('\r', allow) - allow).find("GET") != std::string::npos);
}

TEST_CASE("a refused document lists its problems") {
  Bench bench;
  const std::string answer =
      request(bench.port(), "POST /api/v1/experiments HTTP/1.1", R"({"config":"bad"})");
  CHECK(status_of(answer) == 400);
  const Json error = json_of(answer)["error"];
  CHECK(error["details"][0]["line"] == 14);
  CHECK(error["details"][0]["path"] == "searcher.max_trials");
  CHECK(error["error"].get<std::string>().find("const.yaml:14") != std::string::npos);
}

TEST_CASE("streams are sent as lines of results") {
  Bench bench;
  Client client(bench.port());
  client.send("GET /api/v1/trials/1/logs?limit=1000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_all();
  CHECK(status_of(answer) == 200);
  CHECK(answer.find("Transfer-Encoding: chunked") != std::string::npos);
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = answer.find("{\"result\":", at)) != std::string::npos; ++at) ++lines;
  CHECK(lines == 1000);
  CHECK(answer.find("\"log\":\"line 1000\"") != std::string::npos);
  CHECK(answer.ends_with("0\r\n\r\n"));
}

TEST_CASE("the reply to HEAD of a stream has the header only, and the connection serves the next request") {
  Bench bench;
  Client client(bench.port());
  client.send(
      "HEAD /api/v1/trials/7/logs?limit=3 HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answers = client.read_all();
  CHECK(status_of(answers) == 200);
  CHECK(body_of(answers).starts_with("HTTP/1.1 200 OK"));
  CHECK(body_of(body_of(answers)) == "{\"status\":\"up\"}\n");
}

TEST_CASE("a stream that fails to start returns an error, one that breaks ends with an error line") {
  Bench bench;
  CHECK(status_of(request(bench.port(), "GET /api/v1/trials/404/logs HTTP/1.1")) == 404);
  const std::string broken = request(bench.port(), "GET /api/v1/trials/500/logs?limit=5 HTTP/1.1");
  CHECK(status_of(broken) == 200);
  CHECK(broken.find("\"grpcCode\":13") != std::string::npos);
  CHECK(broken.find("broke in the middle") != std::string::npos);
}

TEST_CASE("login sets an HttpOnly cookie, logout clears it") {
  Bench bench;
  const std::string answer =
      request(bench.port(), "POST /api/v1/auth/login HTTP/1.1", R"({"username":"bo","password":"right"})");
  CHECK(answer.find("Set-Cookie: auth=tok; Path=/; HttpOnly; SameSite=Strict") != std::string::npos);
  CHECK(json_of(answer)["token"] == "tok");
  const std::string refused =
      request(bench.port(), "POST /api/v1/auth/login HTTP/1.1", R"({"username":"bo","password":"wrong"})");
  CHECK(status_of(refused) == 401);
  CHECK(refused.find("Set-Cookie") == std::string::npos);
  CHECK(request(bench.port(), "POST /api/v1/auth/logout HTTP/1.1").find("Max-Age=0") != std::string::npos);
}

TEST_CASE("the session is accepted from header and cookie, and the client's address is forwarded") {
  Bench bench;
  const std::string get = "GET /api/v1/me HTTP/1.1\r\n";
  CHECK(status_of(request(bench.port(), get + "X: y")) == 401);
  CHECK(json_of(request(bench.port(), get + "Authorization: Bearer good"))["user"]["displayName"] ==
        "127.0.0.1");
  CHECK(status_of(request(bench.port(), get + "Cookie: a=b; auth=good")) == 200);
  CHECK(status_of(request(bench.port(), get + "Cookie: auth=bad")) == 401);
  // The header takes precedence.
  CHECK(status_of(request(bench.port(), get + "Cookie: auth=good\r\nAuthorization: Bearer bad")) == 401);
}

TEST_CASE("a change by cookie requires a proof of same origin") {
  Bench bench;
  const std::string post = "POST /api/v1/experiments/1/kill HTTP/1.1\r\nCookie: auth=good";
  CHECK(status_of(request(bench.port(), post)) == 403);
  CHECK(status_of(request(bench.port(), post + "\r\nOrigin: http://evil.example")) == 403);
  CHECK(status_of(request(bench.port(), post + "\r\nOrigin: http://test")) == 200);
  CHECK(status_of(request(bench.port(), post + "\r\nX-Requested-With: det")) == 200);
  CHECK(status_of(request(bench.port(), post + "\r\nAuthorization: Bearer good")) == 200);
}

TEST_CASE("all routes are unambiguous and name existing fields") {
  const http::Routes routes({v1::LoginRequest::descriptor()->file()->service(0),
                             v1::GetMasterRequest::descriptor()->file()->service(0),
                             v1::GetExperimentsRequest::descriptor()->file()->service(0),
                             v1::GetTrialRequest::descriptor()->file()->service(0),
                             v1::GetCheckpointRequest::descriptor()->file()->service(0),
                             v1::TrialLogsRequest::descriptor()->file()->service(0)});
  CHECK(routes.all().size() >= 24);
  for (const http::Route& route : routes.all()) {
    std::string path;
    for (const std::string& segment : route.segments) {
      path += "/" + (segment.starts_with('{') ? "1" : segment);
      if (!segment.starts_with('{')) continue;
      INFO(route.method->full_name() << " " << segment);
      const auto* type = route.method->input_type();
      for (const std::string& name : split(segment.substr(1, segment.size() - 2), '.')) {
        const auto* field = type == nullptr ? nullptr : type->FindFieldByName(name);
        CHECK(field != nullptr);
        type = field == nullptr ? nullptr : field->message_type();
      }
    }
    const http::Match match = routes.find(route.verb, path);
    REQUIRE(match.route);
    CHECK(match.route->method == route.method);
  }
}

}  // namespace
}  // namespace det
