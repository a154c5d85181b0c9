// Webhooks: endpoints that are told about events, and the queue of events. Events are queued by
// queue_state_webhooks() (new states) and queue_metric_webhooks() (metrics) of the schema, by log_triggers.h
// (log lines) and by queue_webhook_alert().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "master/db/queries/page.h"

namespace det::db {

/// When a webhook is told.
struct WebhookTrigger {
  std::int64_t id = 0;
  /// EXPERIMENT_STATE_CHANGE, TASK_LOG, METRIC_THRESHOLD_EXCEEDED or CUSTOM.
  std::string kind;
  /// State of the experiment, regular expression (RE2), or {"metric": NAME, "above" or "below": NUMBER};
  /// "" for CUSTOM.
  std::string condition;
};
/// An endpoint.
struct Webhook {
  std::int64_t id = 0;
  std::string name, url;
  std::string format = "DEFAULT";         ///< DEFAULT or SLACK.
  std::string mode = "WORKSPACE";         ///< WORKSPACE, or SPECIFIC: only experiments that name it.
  std::optional<std::int64_t> workspace;  ///< Empty: the whole cluster.
  std::int64_t failures = 0;              ///< Failed attempts in a row.
  std::string outcome;                    ///< Of the latest attempt; "": none yet.
  std::optional<WallTime> attempted;
  std::vector<WebhookTrigger> triggers;
};

/// Maximum number of webhooks of one workspace. Their log triggers run on each line of its tasks.
inline constexpr std::int64_t kMaxWebhooksOfWorkspace = 64;
/// Stores a webhook with its triggers. Returns its id. kFailedPrecondition: no such workspace.
/// kResourceExhausted: the workspace has kMaxWebhooksOfWorkspace.
Result<std::int64_t> create_webhook(Pool& pool, const Webhook& webhook);
/// Lists webhooks of the whole cluster and of visible workspaces by id.
Result<std::vector<Webhook>> list_webhooks(Pool& pool, const Visible& visible);
/// Returns one webhook. kNotFound.
Result<Webhook> get_webhook(Pool& pool, std::int64_t id);
/// Changes the URL, and tries queued events at once. Idempotent. kNotFound.
Status set_webhook_url(Pool& pool, std::int64_t id, const std::string& url);
/// Deletes a webhook, its triggers and its queued events. kNotFound.
Status delete_webhook(Pool& pool, std::int64_t id);

/// An alert that a task raised.
struct WebhookAlert {
  std::int64_t experiment = 0, trial = 0;  ///< trial 0: none
  std::string level, title, description;
};
/// Queues an alert for every webhook with a CUSTOM trigger that applies. Returns how many. kNotFound: no such
/// experiment.
Result<std::int64_t> queue_webhook_alert(Pool& pool, const WebhookAlert& alert);

/// A queued event with what its text needs.
struct WebhookEvent {
  std::int64_t id = 0, webhook = 0;
  std::string kind;  ///< as WebhookTrigger::kind
  std::string
      event;  ///< JSON object: state; regex, task_id, node_name, triggering_log; rule, value; level, …
  std::string url, format;
  std::optional<std::int64_t> webhook_workspace;  ///< as Webhook::workspace
  WallTime created;
  // The experiment; 0 for commands and tests.
  std::int64_t experiment = 0;
  std::string name, state, resource_pool, workspace, project;
  std::int64_t slots_per_trial = 0;
  double duration_s = 0;
};
/// Returns the oldest event of each webhook that is not `busy`, if it is due: at most `limit` events, those
/// of different workspaces in turn. Events of deleted webhooks are removed.
Result<std::vector<WebhookEvent>> due_webhook_events(Pool& pool, std::int64_t limit,
                                                     const std::vector<std::int64_t>& busy = {});
/// Records that the endpoint took the event or refused it for good, and removes the event.
Status end_webhook_event(Pool& pool, const WebhookEvent& event, const std::string& outcome);
/// Records a failed attempt and delays all events of the webhook: by 1 s, doubled per failure in a row, at
/// most 10 min. Removes events older than a day; returns how many.
Result<std::int64_t> delay_webhook(Pool& pool, std::int64_t webhook, const std::string& outcome);

}  // namespace det::db
