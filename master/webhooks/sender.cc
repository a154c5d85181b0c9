#include "master/webhooks/sender.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/storage/http.h"
#include "master/webhooks/message.h"

namespace det::webhooks {
namespace {

// Events in flight: in total, and of the webhooks of one workspace (or of the whole cluster).
constexpr std::size_t kMaxInFlight = 8;
constexpr std::int64_t kMaxPerWorkspace = 2;
constexpr std::int64_t kBatch = 32;       // webhooks considered in one look at the queue
constexpr std::size_t kAnswer = 1 << 16;  // bytes of an answer that are read

std::string status_text(int status) { return "HTTP " + std::to_string(status); }

}  // namespace

Sender::Sender(db::Pool& pool, SenderOptions options)
    : pool_(pool),
      options_(std::move(options)),
      senders_(static_cast<int>(kMaxInFlight), kMaxInFlight),
      worker_(
          1, 1, [this] { tick(); }, options_.pause) {}

void Sender::stop() {
  stopping_ = true;
  // The outcomes of completed requests are stored before worker_ stops.
  senders_.stop();
  worker_.stop();
}

Sender::Attempt Sender::send(const db::WebhookEvent& event) const {
  if (std::string reason = refusal(event.url); !reason.empty()) return {.outcome = std::move(reason)};
  const std::string body = message(event, options_.cluster_id, options_.base_url);
  const auto begin = mono_now();
  storage::Exchange request{.method = "POST", .url = event.url, .body = body};
  request.headers["content-type"] = "application/json; charset=UTF-8";
  request.headers["user-agent"] = "determinant";
  if (!options_.signing_key.empty()) {
    const std::int64_t now = wall_now().micros / 1'000'000;
    request.headers["x-determined-ai-signature-timestamp"] = std::to_string(now);
    request.headers["x-determined-ai-signature"] = signature(options_.signing_key, now, body);
  }
  request.connect_timeout = request.stall_timeout = options_.timeout;
  request.internal_allowed = storage::is_trusted(options_.egress, event.url);
  request.private_allowed = options_.egress.private_allowed;
  request.most_bytes = kAnswer;
  request.expired = [&] { return stopping_.load() || mono_now() - begin > options_.timeout; };
  const auto answer = storage::exchange(request);
  if (!answer && answer.error().code == Code::kFailedPrecondition)
    return {.outcome =
                "the host has an address of the master's own machine, link or private network; an "
                "administrator can name it in " +
                options_.egress.setting};
  // The endpoint took a message, but its answer is too long to read.
  if (!answer && answer.error().code == Code::kResourceExhausted)
    return {.over = true, .taken = true, .outcome = "delivered"};
  if (!answer) return {.outcome = answer.error().message};
  const int status = answer->status;
  if (status / 100 == 2 || status / 100 == 3) return {.over = true, .taken = true, .outcome = "delivered"};
  const bool retried = status >= 500 || status == 408 || status == 429;
  return {.over = !retried, .outcome = status_text(status)};
}

void Sender::tick() {
  if (stopping_ || in_flight_.size() >= kMaxInFlight) return;
  std::vector<std::int64_t> busy;
  for (const auto& [webhook, workspace] : in_flight_) busy.push_back(webhook);
  const auto events = db::due_webhook_events(pool_, kBatch, busy);
  if (!events) return;  // the database is away; the next tick looks again
  for (const db::WebhookEvent& event : *events) {
    if (in_flight_.size() >= kMaxInFlight) return;
    const auto others = std::ranges::count_if(
        in_flight_, [&](const auto& other) { return other.second == event.webhook_workspace; });
    if (others >= kMaxPerWorkspace) continue;
    in_flight_.emplace(event.webhook, event.webhook_workspace);
    // There is room for kMaxInFlight jobs.
    (void)senders_.try_post([this, event] {
      Attempt attempt = send(event);
      (void)worker_.post([this, event, attempt = std::move(attempt)] {
        finish(event, attempt);
        tick();
      });
    });
  }
}

void Sender::finish(const db::WebhookEvent& event, const Attempt& attempt) {
  in_flight_.erase(event.webhook);
  if (stopping_ && !attempt.over) return;
  const log::Fields fields = {{"webhook", event.webhook},
                              {"url", shown_url(event.url)},
                              {"event", event.id},
                              {"outcome", attempt.outcome}};
  if (attempt.over) {
    if (!attempt.taken) log::warn("webhook refused an event", fields);
    (void)db::end_webhook_event(pool_, event, attempt.outcome);
    return;
  }
  log::warn("webhook could not be reached; retrying", fields);
  const auto dropped = db::delay_webhook(pool_, event.webhook, attempt.outcome);
  if (dropped && *dropped > 0)
    log::warn("dropped webhook events that are older than a day",
              {{"webhook", event.webhook}, {"events", *dropped}});
}

Status Sender::test(const db::Webhook& webhook) {
  db::WebhookEvent event;
  event.webhook = webhook.id;
  event.kind = "TEST";
  event.event = "{}";
  event.url = webhook.url;
  event.format = webhook.format;
  event.created = wall_now();
  const Attempt attempt = send(event);
  if (attempt.taken) return {};
  return fail(Code::kUnavailable, "webhook " + std::to_string(webhook.id) + ": " + attempt.outcome);
}

}  // namespace det::webhooks
