// Messages that webhooks send. Layout and header names are those of Determined AI 0.38, so that existing
// receivers work.
#pragma once

#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "master/db/queries/webhooks.h"

namespace det::webhooks {

/// Body of the request: an object with event_id, event_type, timestamp, condition and event_data, or a
/// message of Slack's Block Kit, by `event.format`. `base_url` is the address of the web UI for links; ""
/// leaves them out. Repeated deliveries of an event have the same event_id.
std::string message(const db::WebhookEvent& event, const std::string& cluster_id,
                    const std::string& base_url);

/// Signature of a request: HMAC-SHA256 of "TIMESTAMP,BODY" in lower-case hex (RFC 2104).
std::string signature(std::string_view key, std::int64_t timestamp, std::string_view body);

/// Checks that an URL can be a webhook's: http or https, a host of letters, digits, dots and hyphens or a
/// literal address, no user name, no control characters, at most 2048 bytes. kInvalidArgument with the
/// reason.
Status check_url(const std::string& url);

/// Returns scheme and host of an URL. Paths of webhooks are secrets, which logs must not contain.
std::string shown_url(const std::string& url);

}  // namespace det::webhooks
