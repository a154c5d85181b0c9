// Handlers of UserService for client settings and bulk activation.
#include "common/base/text.h"
#include "master/api/accounts/user.h"
#include "master/db/queries/projects.h"

namespace det::api {
namespace {

constexpr int kMaxUserSettings = 1000;  // of one call
constexpr std::size_t kMaxSettingKey = 256, kMaxSettingValue = 1 << 20;

Result<std::vector<db::UserSetting>> read_settings(const v1::PostUserSettingRequest& request) {
  if (request.settings_size() > kMaxUserSettings)
    return fail(Code::kInvalidArgument, "settings: at most 1000");
  std::vector<db::UserSetting> out;
  for (const v1::UserWebSetting& one : request.settings()) {
    const bool plain = !one.key().empty() && one.key().size() <= kMaxSettingKey &&
                       one.storage_path().size() <= kMaxSettingKey && one.value().size() <= kMaxSettingValue;
    if (!plain || find_bad_utf8(one.key() + one.storage_path() + one.value()) ||
        has_control_characters(one.key() + one.storage_path()) || one.value().find('\0') != std::string::npos)
      return fail(Code::kInvalidArgument,
                  "settings: a key and path of at most 256 bytes, a value of at most 1 MiB");
    out.push_back({one.storage_path(), one.key(), one.value()});
  }
  return out;
}

}  // namespace

Status UserService::GetUserSetting(const Caller& caller, const v1::GetUserSettingRequest&,
                                   v1::GetUserSettingResponse* response) {
  TRY_ASSIGN(const auto settings, db::list_user_settings(context_.pool, caller.user.id));
  for (const db::UserSetting& one : settings) {
    v1::UserWebSetting* out = response->add_settings();
    out->set_storage_path(one.path);
    out->set_key(one.key);
    out->set_value(one.value);
  }
  return {};
}

Status UserService::PostUserSetting(const Caller& caller, const v1::PostUserSettingRequest& request,
                                    v1::PostUserSettingResponse*) {
  TRY_ASSIGN(const auto settings, read_settings(request));
  return db::put_user_settings(context_.pool, caller.user.id, settings);
}

Status UserService::PostUserActivity(const Caller& caller, const v1::PostUserActivityRequest& request,
                                     v1::PostUserActivityResponse*) {
  if (request.entity_type() != v1::PostUserActivityRequest::ENTITY_TYPE_PROJECT)
    return fail(Code::kInvalidArgument, "entityType: must be ENTITY_TYPE_PROJECT");
  const std::string id = std::to_string(request.entity_id());
  TRY(authorize(caller, Action::kView, Target::kProject, {id}, context_.pool));
  TRY(db::get_project(context_.pool, request.entity_id()));
  return db::visit_project(context_.pool, caller.user.id, request.entity_id());
}

Status UserService::ResetUserSetting(const Caller& caller, const v1::ResetUserSettingRequest&,
                                     v1::ResetUserSettingResponse*) {
  return db::clear_user_settings(context_.pool, caller.user.id);
}

Status UserService::PatchUsers(const Caller& caller, const v1::PatchUsersRequest& request,
                               v1::PatchUsersResponse* response) {
  for (const int id : request.user_ids()) {
    // A failure is part of the response and does not stop the others.
    const Status done =
        db::change_user(context_.pool, UserId(id), {.active = request.activate()}, caller.token_hash);
    v1::UserActionResult* result = response->add_results();
    result->set_id(id);
    if (!done) result->set_error(done.error().message);
  }
  return {};
}

}  // namespace det::api
