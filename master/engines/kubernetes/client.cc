#include "master/engines/kubernetes/client.h"

namespace det::engines {
namespace {

constexpr auto kConnectTimeout = std::chrono::seconds(4);
constexpr auto kStallTimeout = std::chrono::seconds(8);
/// Limit on silence in a watch. Longer than the time after which the server ends it (watch.cc).
constexpr auto kWatchStall = std::chrono::seconds(70);
constexpr JsonLimits kLimits{.bytes = 16 << 20, .depth = 64};

storage::Exchange prepare(const Access& access, const std::string& method, const Resource& resource,
                          const std::string& rest) {
  storage::Exchange request{.method = method,
                            .url = access.server + resource.api + "/namespaces/" + access.name_space + "/" +
                                   resource.plural + rest};
  request.headers["accept"] = "application/json";
  request.headers["user-agent"] = "det-master";
  if (!access.token.empty()) request.headers["authorization"] = "Bearer " + access.token;
  request.connect_timeout = kConnectTimeout;
  request.stall_timeout = kStallTimeout;
  request.most_bytes = kLimits.bytes;
  request.tls = access.tls;
  return request;
}

Code code_of(int status) {
  switch (status) {
    case 404:
      return Code::kNotFound;
    case 409:
      return Code::kAlreadyExists;
    case 410:
      return Code::kOutOfRange;
    case 401:  // an expired token is replaced, and the call repeated
    case 408:
    case 429:
      return Code::kUnavailable;
    default:
      return status >= 500 ? Code::kUnavailable : Code::kInvalidArgument;
  }
}

/// Returns the error of a response, with the message of its Status object.
tl::unexpected<Error> refusal(const storage::Answer& answer) {
  std::string message = "HTTP " + std::to_string(answer.status);
  const auto body = parse_json(answer.body, kLimits);
  if (body && body->is_object() && body->contains("message") && (*body)["message"].is_string())
    message += ": " + (*body)["message"].get<std::string>().substr(0, 500);
  return fail(code_of(answer.status), message);
}

}  // namespace

Client::Client(std::function<Result<Access>()> access, SendHttp http, std::function<bool()> stopped)
    : access_(std::move(access)), http_(std::move(http)), stopped_(std::move(stopped)) {}

Result<Json> Client::call(const std::string& method, const Resource& resource, const std::string& rest,
                          const Json& body) const {
  auto access = access_();
  if (!access) return fail(Code::kUnavailable, access.error().message);
  storage::Exchange request = prepare(*access, method, resource, rest);
  const std::string text = body.is_null() ? "" : dump_json(body);
  if (!text.empty()) request.headers["content-type"] = "application/json";
  request.body = text;
  request.expired = stopped_;
  const auto answer = http_(request);
  if (!answer) return fail(Code::kUnavailable, answer.error().message);
  if (answer->status / 100 != 2) return refusal(*answer);
  auto json = parse_json(answer->body, kLimits);
  if (!json || !json->is_object())
    return fail(Code::kUnavailable, "the server replied with text that is no JSON object");
  return std::move(*json);
}

Status Client::stream(const Resource& resource, const std::string& rest,
                      const std::function<bool(std::string_view)>& sink,
                      const std::function<bool()>& ended) const {
  auto access = access_();
  if (!access) return fail(Code::kUnavailable, access.error().message);
  storage::Exchange request = prepare(*access, "GET", resource, rest);
  request.sink = sink;
  request.stall_timeout = kWatchStall;
  request.expired = [&] { return stopped_() || ended(); };
  const auto answer = http_(request);
  if (!answer) return fail(answer.error().code, answer.error().message);
  if (answer->status / 100 != 2) return refusal(*answer);
  return {};
}

}  // namespace det::engines
