#include "master/db/queries/webhooks.h"

#include "master/db/store/at_rest.h"

namespace det::db {
namespace {

const Columns<Webhook>& webhook_columns() {
  using W = Webhook;
  static const Columns<W> columns(column<&W::id>("w.id"), column<&W::name>("w.name"),
                                  column<&W::url>("w.url"), column<&W::format>("w.format"),
                                  column<&W::mode>("w.mode"), column<&W::workspace>("w.workspace_id"),
                                  column<&W::failures>("w.failures"), column<&W::outcome>("w.outcome"),
                                  column<&W::attempted>("w.attempted"));
  return columns;
}

std::string webhook_name(std::int64_t id) { return "webhook " + std::to_string(id); }

/// Decrypts the URLs of webhooks or of their events.
template <typename Row>
Status open_urls(std::vector<Row>& rows) {
  for (Row& row : rows) {
    TRY_ASSIGN(row.url, open_text(std::move(row.url)));
  }
  return {};
}

/// Reads the triggers of webhooks that are sorted by id.
Status read_triggers(Pool& pool, std::vector<Webhook>& webhooks) {
  std::vector<std::int64_t> ids;
  for (const Webhook& webhook : webhooks) ids.push_back(webhook.id);
  TRY_ASSIGN(const Rows rows, pool.query("SELECT webhook_id, id, kind, condition FROM webhook_triggers"
                                         " WHERE webhook_id = ANY ($1) ORDER BY webhook_id, id",
                                         ids));
  auto webhook = webhooks.begin();
  for (Rows::Row row : rows) {
    const auto owner = row.next<std::int64_t>();
    while (webhook != webhooks.end() && webhook->id < owner) ++webhook;
    if (webhook == webhooks.end()) break;
    WebhookTrigger& trigger = webhook->triggers.emplace_back();
    row.into(trigger.id, trigger.kind, trigger.condition);
  }
  return {};
}

}  // namespace

Result<std::int64_t> create_webhook(Pool& pool, const Webhook& webhook) {
  std::vector<std::string> kinds, conditions;
  for (const WebhookTrigger& trigger : webhook.triggers) {
    kinds.push_back(trigger.kind);
    conditions.push_back(trigger.condition);
  }
  TRY_ASSIGN(
      const Rows rows,
      pool.query("WITH hook AS (INSERT INTO webhooks (name, url, format, mode, workspace_id)"
                 " SELECT $1, $2, $3, $4, $5 WHERE $8 >"
                 " (SELECT count(*) FROM webhooks WHERE workspace_id = $5) RETURNING id), triggers AS ("
                 "INSERT INTO webhook_triggers (webhook_id, kind, condition)"
                 " SELECT hook.id, t.kind, t.condition FROM hook,"
                 " unnest($6::text[], $7::text[]) WITH ORDINALITY AS t (kind, condition, place)"
                 " ORDER BY t.place) SELECT id FROM hook",
                 webhook.name, seal_text(webhook.url), webhook.format, webhook.mode, webhook.workspace, kinds,
                 conditions, kMaxWebhooksOfWorkspace));
  if (rows.empty())
    return fail(
        Code::kResourceExhausted,
        "a workspace has at most " + std::to_string(kMaxWebhooksOfWorkspace) + " webhooks; delete one first");
  return rows[0].next<std::int64_t>();
}

Result<std::vector<Webhook>> list_webhooks(Pool& pool, const Visible& visible) {
  static const std::string sql = webhook_columns().select(
      " FROM webhooks w WHERE $1::bigint[] IS NULL OR w.workspace_id IS NULL OR w.workspace_id = ANY ($1)"
      " ORDER BY w.id");
  TRY_ASSIGN(auto webhooks, webhook_columns().read(pool.query(sql, visible)));
  TRY(open_urls(webhooks));
  TRY(read_triggers(pool, webhooks));
  return webhooks;
}

Result<Webhook> get_webhook(Pool& pool, std::int64_t id) {
  static const std::string sql = webhook_columns().select(" FROM webhooks w WHERE w.id = $1");
  TRY_ASSIGN(auto webhook, webhook_columns().one(pool.query(sql, id), webhook_name(id)));
  std::vector<Webhook> one{std::move(webhook)};
  TRY(open_urls(one));
  TRY(read_triggers(pool, one));
  return std::move(one.front());
}

Status set_webhook_url(Pool& pool, std::int64_t id, const std::string& url) {
  return found(pool.query("WITH retried AS (UPDATE webhook_events SET due = now() WHERE webhook_id = $1)"
                          " UPDATE webhooks SET url = $2, failures = 0 WHERE id = $1",
                          id, seal_text(url)),
               webhook_name(id));
}

Status delete_webhook(Pool& pool, std::int64_t id) {
  return found(pool.query("WITH matches AS (DELETE FROM webhook_matches m USING webhook_triggers t"
                          " WHERE t.webhook_id = $1 AND m.trigger_id = t.id),"
                          " events AS (DELETE FROM webhook_events WHERE webhook_id = $1)"
                          " DELETE FROM webhooks WHERE id = $1",
                          id),
               webhook_name(id));
}

Result<std::int64_t> queue_webhook_alert(Pool& pool, const WebhookAlert& alert) {
  TRY_ASSIGN(
      const Rows rows,
      pool.query("WITH experiment AS (SELECT e.id, e.config, p.workspace_id FROM experiments e"
                 " JOIN projects p ON p.id = e.project_id WHERE e.id = $1), queued AS ("
                 "INSERT INTO webhook_events (webhook_id, kind, experiment_id, event)"
                 " SELECT w.id, t.kind, e.id, json_build_object("
                 "'trial_id', $2::bigint, 'level', $3::text, 'title', $4::text, 'description', $5::text)"
                 " FROM webhook_triggers t JOIN webhooks w ON w.id = t.webhook_id, experiment e"
                 " WHERE t.kind = 'CUSTOM'"
                 " AND webhook_applies(w.id, w.name, w.mode, w.workspace_id, e.workspace_id, e.config)"
                 " ORDER BY t.id RETURNING id)"
                 " SELECT (SELECT count(*) FROM experiment), (SELECT count(*) FROM queued)",
                 alert.experiment, alert.trial, alert.level, alert.title, alert.description));
  Rows::Row row = rows[0];
  if (row.next<std::int64_t>() == 0)
    return fail(Code::kNotFound, "experiment " + std::to_string(alert.experiment) + " not found");
  return row.next<std::int64_t>();
}

Result<std::vector<WebhookEvent>> due_webhook_events(Pool& pool, std::int64_t limit,
                                                     const std::vector<std::int64_t>& busy) {
  TRY(
      pool.query("DELETE FROM webhook_events e WHERE e.due <= now()"
                 " AND NOT EXISTS (SELECT FROM webhooks w WHERE w.id = e.webhook_id)"));
  using E = WebhookEvent;
  static const Columns<E> kColumns(
      column<&E::id>("v.id"), column<&E::webhook>("v.webhook_id"), column<&E::kind>("v.kind"),
      column<&E::event>("v.event::text"), column<&E::url>("w.url"), column<&E::format>("w.format"),
      column<&E::webhook_workspace>("w.workspace_id"), column<&E::created>("v.created"),
      column<&E::experiment>("coalesce(e.id, 0)"), column<&E::name>("coalesce(e.name, '')"),
      column<&E::state>("coalesce(e.state, '')"), column<&E::resource_pool>("coalesce(e.resource_pool, '')"),
      column<&E::workspace>("coalesce(s.name, '')"), column<&E::project>("coalesce(p.name, '')"),
      column<&E::slots_per_trial>("coalesce((e.config #>> '{resources,slots_per_trial}')::bigint, 0)"),
      column<&E::duration_s>("coalesce(extract(epoch FROM coalesce(e.ended, now()) - e.submitted), 0)"
                             "::double precision"));
  static const std::string sql = kColumns.select(
      " FROM webhooks w CROSS JOIN LATERAL (SELECT * FROM webhook_events WHERE webhook_id = w.id"
      " ORDER BY id LIMIT 1) v LEFT JOIN experiments e ON e.id = v.experiment_id"
      " LEFT JOIN projects p ON p.id = e.project_id"
      " LEFT JOIN workspaces s ON s.id = p.workspace_id WHERE v.due <= now() AND w.id <> ALL ($2)"
      " ORDER BY row_number() OVER (PARTITION BY w.workspace_id ORDER BY v.id), v.id LIMIT $1");
  TRY_ASSIGN(auto events, kColumns.read(pool.query(sql, limit, busy)));
  TRY(open_urls(events));
  return events;
}

Status end_webhook_event(Pool& pool, const WebhookEvent& event, const std::string& outcome) {
  TRY(
      pool.query("WITH gone AS (DELETE FROM webhook_events WHERE id = $1)"
                 " UPDATE webhooks SET failures = 0, outcome = $3, attempted = now() WHERE id = $2",
                 event.id, event.webhook, outcome));
  return {};
}

Result<std::int64_t> delay_webhook(Pool& pool, std::int64_t webhook, const std::string& outcome) {
  TRY(
      pool.query("WITH hook AS (UPDATE webhooks SET failures = failures + 1, outcome = $2, attempted = now()"
                 " WHERE id = $1 RETURNING failures)"
                 " UPDATE webhook_events v SET due = now() + make_interval(secs =>"
                 " least(600, power(2, least(hook.failures - 1, 16)))::double precision)"
                 " FROM hook WHERE v.webhook_id = $1",
                 webhook, outcome));
  TRY_ASSIGN(const Rows old, pool.query("DELETE FROM webhook_events WHERE webhook_id = $1"
                                        " AND created < now() - interval '1 day' RETURNING id",
                                        webhook));
  return static_cast<std::int64_t>(old.size());
}

}  // namespace det::db
