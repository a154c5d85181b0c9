// Delivers queued webhook events over HTTP, at least once and in order for each webhook. A failed attempt
// delays the events of its webhook only.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "common/base/event.h"
#include "common/storage/egress_policy.h"
#include "master/db/queries/webhooks.h"
#include "master/loop/workers.h"

namespace det::webhooks {

/// Identity of the cluster, signature and limits.
struct SenderOptions {
  std::string cluster_id;
  std::string signing_key;  ///< "": requests are not signed
  std::string base_url;     ///< address of the web UI in links; "": none
  storage::EgressPolicy egress;
  Duration pause = std::chrono::milliseconds(500);  ///< between two looks at the queue
  std::chrono::seconds timeout{10};                 ///< of one request
};

/// One thread takes events from the queue, others send them: one event of a webhook at a time, and events of
/// few webhooks of one workspace, so that slow endpoints do not hold up those of other workspaces. An
/// endpoint that answers with 2xx or 3xx has taken the event; 4xx refuses it for good, except 408 and 429.
/// Anything else is tried again with growing delays for a day.
class Sender {
 public:
  /// `pool` must outlive the sender. Starts the threads.
  Sender(db::Pool& pool, SenderOptions options);
  ~Sender() { stop(); }
  /// Looks at the queue at once. Never blocks. Any thread.
  void wake() {
    (void)worker_.try_post([this] { tick(); });
  }
  /// Ends the requests in flight, and the threads. Idempotent.
  void stop();
  /// Sends a test message to a webhook now and returns the outcome. Blocks for at most the time-out.
  /// kUnavailable with the reason when the endpoint did not take it.
  Status test(const db::Webhook& webhook);
  /// Returns "" if the URL may be contacted, else the reason and remedy.
  std::string refusal(const std::string& url) const { return storage::egress_refusal(options_.egress, url); }

 private:
  /// What became of an attempt.
  struct Attempt {
    bool over = false;  ///< taken, or refused for good
    bool taken = false;
    std::string outcome;  ///< for users, without the URL
  };
  /// Starts to send due events of webhooks without one in flight. Thread of worker_.
  void tick();
  /// Stores the outcome of an attempt. Thread of worker_.
  void finish(const db::WebhookEvent& event, const Attempt& attempt);
  Attempt send(const db::WebhookEvent& event) const;

  db::Pool& pool_;
  const SenderOptions options_;
  std::atomic<bool> stopping_{false};
  /// Webhooks with an event in flight, and their workspaces. Thread of worker_.
  std::map<std::int64_t, std::optional<std::int64_t>> in_flight_;
  loop::Workers senders_;
  loop::Workers worker_;  ///< uses the members above, and is used by senders_ until stop() has joined it
};

}  // namespace det::webhooks
