// WebhookService: endpoints that are told about experiments. master/webhooks delivers.
#pragma once

#include "det/v1/webhook.pb.h"
#include "master/api/service.h"
#include "master/db/queries/webhooks.h"

namespace det::api {

/// Editors of a workspace manage its webhooks; administrators manage those of the whole cluster, which every
/// user sees. Webhooks in other workspaces are reported as not found.
class WebhookService final : public Service {
 public:
  explicit WebhookService(const Context& context);
  /// Lists visible webhooks. Callers without the right to change a webhook see the host of its URL only.
  Status GetWebhooks(const Caller& caller, const v1::GetWebhooksRequest& request,
                     v1::GetWebhooksResponse* response);
  /// Creates a webhook. Errors: kInvalidArgument with Problems; kPermissionDenied; kResourceExhausted beyond
  /// 64 webhooks of a workspace.
  Status PostWebhook(const Caller& caller, const v1::PostWebhookRequest& request,
                     v1::PostWebhookResponse* response);
  /// Changes the URL. Idempotent. Errors: kNotFound; kInvalidArgument; kPermissionDenied.
  Status PatchWebhook(const Caller& caller, const v1::PatchWebhookRequest& request,
                      v1::PatchWebhookResponse* response);
  /// Deletes a webhook and its queued events. Errors: kNotFound; kPermissionDenied.
  Status DeleteWebhook(const Caller& caller, const v1::DeleteWebhookRequest& request,
                       v1::DeleteWebhookResponse* response);
  /// Sends a test message. Blocks until the endpoint replies, at most 10 s. Errors: kNotFound;
  /// kPermissionDenied; kUnavailable with the endpoint's reply.
  Status TestWebhook(const Caller& caller, const v1::TestWebhookRequest& request,
                     v1::TestWebhookResponse* response);
  /// Queues an alert of an experiment. Errors: kNotFound; kInvalidArgument.
  Status PostWebhookEventData(const Caller& caller, const v1::PostWebhookEventDataRequest& request,
                              v1::PostWebhookEventDataResponse* response);

 private:
  /// Returns a webhook that the caller may change.
  Result<db::Webhook> editable(const Caller& caller, std::int64_t id) const;
};

}  // namespace det::api
