// Requests of the bucket client: signing, retries, and error messages.
#include "common/storage/bucket_call.h"

#include <algorithm>
#include <ctime>
#include <random>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/base/wait.h"
#include "common/crypto/digest.h"
#include "common/storage/http.h"
#include "common/storage/signature.h"

namespace det::storage {
namespace {

/// Current time in the format of Signature Version 4: "20130524T000000Z".
std::string time_of_signature() {
  const std::time_t now = static_cast<std::time_t>(wall_now().micros / 1'000'000);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc);
  return text;
}

/// True if the failure is transient, so that a retry may succeed.
bool is_passing(int status, const std::string& code) {
  return status == 500 || status == 502 || status == 503 || status == 504 || status == 429 ||
         code == "SlowDown" || code == "InternalError" || code == "RequestTimeout" ||
         code == "ServiceUnavailable" || code == "ThrottlingException";
}

/// Exponential back-off of at most 20 s. Half of it is random, so that the ranks of a gang do not retry in
/// lockstep.
std::chrono::milliseconds pause_before(int attempt, std::chrono::milliseconds first) {
  constexpr std::chrono::milliseconds kMaxPause{20'000};
  const auto longest = std::min(kMaxPause, first * (1 << std::min(attempt, 16)));
  static thread_local std::minstd_rand chance{std::random_device{}()};
  return longest / 2 + longest / 2 * (chance() % 1000) / 1000;
}

}  // namespace

void Bucket::wait_before(int attempt, MonoTime begun) const {
  (void)wait_until([&] { return is_expired(begun); }, pause_before(attempt, options_.pause));
}

/// Expired when `alive`, the latest of termination request, begin of this call and last byte, is too old.
/// The result is permanent, so that a terminating process does not wait once for each remaining object.
bool Bucket::is_expired(MonoTime begun) const {
  const auto since = options_.terminating_since != nullptr ? options_.terminating_since() : std::nullopt;
  if (!since || patience_->over) return patience_->over;
  const MonoTime alive = std::max({*since, begun, MonoTime{patience_->moved}});
  if (mono_now() - alive > options_.terminating_patience) patience_->over = true;
  return patience_->over;
}

tl::unexpected<Error> Bucket::refuse(const Call& call, int status, const std::string& body,
                                     const std::map<std::string, std::string>& headers) const {
  constexpr std::size_t kMaxText = 300;
  const Refusal refusal = read_refusal(body);
  const std::string where = name_of(call.key) + " at " + origin_;
  // Texts of the store are untrusted: cut to 300 bytes and made valid UTF-8.
  const std::string said = refusal.code.empty()
                               ? "HTTP status " + std::to_string(status)
                               : make_utf8(refusal.code) + (refusal.message.empty() ? "" : ", ") +
                                     make_utf8(refusal.message.substr(0, kMaxText));
  // Region mismatches come as a redirect or as a malformed-authorization error, depending on the store.
  const auto region = headers.find("x-amz-bucket-region");
  const bool elsewhere = region != headers.end() && region->second != location_.region;
  if (elsewhere || status == 301 || status == 307 || refusal.code == "AuthorizationHeaderMalformed") {
    return fail(Code::kFailedPrecondition, where + ": the bucket is of another region than " +
                                               location_.region + "; set AWS_REGION" +
                                               (elsewhere ? " to " + make_utf8(region->second) : "") +
                                               ", or endpoint_url (" + said + ")");
  }
  if (refusal.code == "NoSuchBucket") {
    return fail(Code::kFailedPrecondition, where + ": there is no bucket \"" + location_.bucket +
                                               "\"; make it, or mend checkpoint_storage.bucket");
  }
  if (refusal.code == "RequestTimeTooSkewed")
    return fail(Code::kPermissionDenied,
                where + ": this machine's clock differs from the store's; set it right");
  if (status == 401 || status == 403) {
    const char* mend = location_.access_key.empty()
                           ? "there are no keys: give access_key and secret_key, or AWS_ACCESS_KEY_ID and "
                             "AWS_SECRET_ACCESS_KEY in the environment"
                           : "check the keys and what they may do";
    return fail(Code::kPermissionDenied, where + ": refused (" + said + "); " + mend);
  }
  if (status == 404) return fail(Code::kNotFound, where + " is missing (" + said + ")");
  if (status == 501 || refusal.code == "NotImplemented" || status == 405)
    return fail(Code::kUnimplemented, where + ": the store does not offer this (" + said + ")");
  if (status == 507 || refusal.code == "QuotaExceeded" || refusal.code == "EntityTooLarge")
    return fail(Code::kResourceExhausted, where + ": the store is full (" + said + ")");
  if (is_passing(status, refusal.code))
    return fail(Code::kUnavailable, where + ": the store is not ready (" + said + "); tried " +
                                        std::to_string(options_.attempts) + " times");
  return fail(Code::kInternal, where + ": " + call.method + " was refused (" + said + ")");
}

Result<std::string> Bucket::call(const Call& call, std::map<std::string, std::string>* headers) const {
  Unsigned request{.method = call.method,
                   .path = root_ + (call.key.empty() ? "" : full(call.key)),
                   .query = call.query,
                   .headers = call.headers,
                   .payload_sha256 = sha256_hex(call.body)};
  // A request to the bucket itself has no trailing slash.
  if (call.key.empty() && request.path.size() > 1) request.path.pop_back();
  request.headers["host"] = host_;
  const std::string query = encoded_query(call.query);
  const std::string url = origin_ + percent_encoded(request.path, true) + (query.empty() ? "" : "?" + query);
  // The egress policy is checked before any name lookup.
  const EgressPolicy& egress = options_.egress != nullptr ? *options_.egress : egress_policy();
  if (const std::string refusal = egress_refusal(egress, location_.endpoint); !refusal.empty())
    return fail(Code::kFailedPrecondition, name_of(call.key) + " at " + origin_ + ": " + refusal);
  const MonoTime begun = mono_now();
  for (int attempt = 0;; ++attempt) {
    if (is_expired(begun))
      return fail(Code::kUnavailable, name_of(call.key) + " at " + origin_ +
                                          ": the store moves nothing, and this process is to end");
    const bool last = attempt + 1 >= options_.attempts;
    // Signs each attempt with the current time: stores reject signatures older than 15 minutes.
    Unsigned signed_request = request;
    if (!location_.access_key.empty()) sign(signed_request, location_, time_of_signature());
    if (call.rewind) call.rewind();
    auto answer = exchange({.method = call.method,
                            .url = url,
                            .headers = std::move(signed_request.headers),
                            .body = call.body,
                            .sink = call.sink,
                            .connect_timeout = options_.connect_timeout,
                            .stall_timeout = options_.stall_timeout,
                            .internal_allowed = is_trusted(egress, location_.endpoint),
                            .most_bytes = call.most_bytes,
                            .moved = [this] { patience_->moved = mono_now().micros; },
                            .expired = [this, begun] { return is_expired(begun); }});
    if (!answer) {
      const Error& error = answer.error();
      if (error.code == Code::kUnavailable && !last) {
        wait_before(attempt, begun);
        continue;
      }
      return fail(error.code, name_of(call.key) + " at " + origin_ + ": " + make_utf8(error.message));
    }
    // Some calls return 200 at once and report a failure later, in the body.
    const std::string code =
        answer->status / 100 == 2 && !answer->body.starts_with("<") ? "" : read_refusal(answer->body).code;
    const bool late = answer->status == 200 && call.method == "POST" && !code.empty();
    if (answer->status / 100 == 2 && !late) {
      if (headers != nullptr) *headers = std::move(answer->headers);
      return std::move(answer->body);
    }
    if (last || !is_passing(late ? 500 : answer->status, code))
      return refuse(call, late ? 500 : answer->status, answer->body, answer->headers);
    wait_before(attempt, begun);
  }
}

}  // namespace det::storage
