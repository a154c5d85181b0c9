#include "master/api/accounts/token.h"

#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "det/v1/token.methods.h"
#include "master/api/auth/role_names.h"
#include "master/api/convert/convert.h"

namespace det::api {
namespace {

constexpr Duration kDefaultTokenLifespan = std::chrono::hours(24 * 30);
constexpr Duration kMaxTokenLifespan = std::chrono::hours(24 * 3650);

Status check_token_description(const std::string& text) {
  if (text.size() <= 256 && !has_control_characters(text) && !find_bad_utf8(text)) return {};
  return fail(Code::kInvalidArgument,
              "a token's description has at most 256 bytes and no control characters");
}

Result<Duration> read_lifespan(const std::string& text) {
  if (text.empty()) return kDefaultTokenLifespan;
  // Determined AI's notation for an unlimited token.
  if (text == "-1") return kMaxTokenLifespan;
  auto read = parse_duration(text);
  if (!read || *read <= Duration(0) || *read > kMaxTokenLifespan)
    return fail(Code::kInvalidArgument, "lifespan must be a time such as 720h, up to ten years, got \"" +
                                            make_utf8(text.substr(0, 64)) + "\"");
  return *read;
}

void to_proto(const db::TokenRow& row, v1::TokenInfo* out) {
  out->set_id(static_cast<int>(row.id));
  out->set_user_id(static_cast<int>(row.user.value));
  out->set_username(row.username);
  out->set_token_type(v1::TOKEN_TYPE_ACCESS_TOKEN);
  api::to_proto(row.expires, out->mutable_expiry());
  api::to_proto(row.created, out->mutable_created_at());
  out->set_revoked(row.revoked);
  out->set_description(row.description);
  if (row.most != db::Role::kNone) out->set_role(std::string(shown_name(row.most)));
  if (row.last_used) api::to_proto(*row.last_used, out->mutable_last_used_at());
}

}  // namespace

TokenService::TokenService(const Context& context) : Service(context, v1::TokenService::full_name) {
  unary(v1::TokenService::PostAccessToken, &TokenService::PostAccessToken);
  unary(v1::TokenService::GetAccessTokens, &TokenService::GetAccessTokens);
  unary(v1::TokenService::PatchAccessToken, &TokenService::PatchAccessToken);
}

Status TokenService::PostAccessToken(const Caller& caller, const v1::PostAccessTokenRequest& request,
                                     v1::PostAccessTokenResponse* response) {
  const UserId owner = request.user_id() == 0 ? caller.user.id : UserId(request.user_id());
  // Own tokens, or any for cluster admins.
  TRY(authorize(caller, Action::kEdit, Target::kUser, {std::to_string(owner.value)}, context_.pool));
  TRY(check_token_description(request.description()));
  db::TokenRow row{.user = owner, .description = request.description()};
  if (!request.role().empty()) {
    row.most = role_by_name(request.role());
    if (row.most != db::Role::kViewer && row.most != db::Role::kEditor &&
        row.most != db::Role::kWorkspaceAdmin) {
      // A limit of ClusterAdmin would be no limit.
      return fail(Code::kInvalidArgument,
                  "role must be Viewer, Editor or WorkspaceAdmin (none: as far as the user), got \"" +
                      make_utf8(request.role().substr(0, 64)) + "\"");
    }
  }
  TRY_ASSIGN(const Duration lifespan, read_lifespan(request.lifespan()));
  TRY_ASSIGN(const db::User user, db::get_user(context_.pool, owner));
  // A token of an inactive user would not authenticate.
  if (!user.active) return fail(Code::kFailedPrecondition, "user " + user.name + " is not active");
  // The prefix shows the kind of a token: det_j_ join, det_p_ access, det_u_ login.
  const std::string token = "det_p_" + random_token();
  TRY_ASSIGN(const std::int64_t id, db::create_token(context_.pool, row, token_hash(token), lifespan));
  response->set_token(token);
  response->set_token_id(static_cast<int>(id));
  return {};
}

Status TokenService::GetAccessTokens(const Caller& caller, const v1::GetAccessTokensRequest& request,
                                     v1::GetAccessTokensResponse* response) {
  db::TokenFilter filter{.ids = {request.token_ids().begin(), request.token_ids().end()},
                         .ended = request.show_inactive(),
                         .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  const bool admin = caller.grants.everywhere() == db::Role::kClusterAdmin;
  // Users list their own tokens only.
  if (!admin) filter.user = caller.user.id;
  if (!request.username().empty()) {
    const auto user = db::find_user(context_.pool, make_utf8(request.username()));
    if (!user) return tl::unexpected(user.error());
    if (!admin && user->id != caller.user.id)
      return fail(Code::kPermissionDenied, "the tokens of others are for admins");
    filter.user = user->id;
  }
  TRY_ASSIGN(const auto page, db::list_tokens(context_.pool, filter));
  for (const db::TokenRow& row : page.rows) to_proto(row, response->add_token_info());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status TokenService::PatchAccessToken(const Caller&, const v1::PatchAccessTokenRequest& request,
                                      v1::PatchAccessTokenResponse* response) {
  std::optional<std::string> description;
  if (request.has_description()) {
    description = request.description().value();
    TRY(check_token_description(*description));
  }
  TRY(db::change_token(context_.pool, request.token_id(), description, request.set_revoked()));
  TRY_ASSIGN(const auto page, db::list_tokens(context_.pool, {.ids = {request.token_id()}, .ended = true}));
  if (!page.rows.empty()) to_proto(page.rows[0], response->mutable_token_info());
  return {};
}

}  // namespace det::api
