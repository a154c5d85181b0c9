#include "master/api/accounts/group.h"

#include "common/base/text.h"
#include "det/v1/group.methods.h"
#include "master/api/convert/convert.h"
#include "master/db/accounts/groups.h"

namespace det::api {
namespace {

constexpr std::size_t kMaxGroupName = 80;

Status check_group_name(const std::string& name) {
  const bool plain = !trim(name).empty() && name.size() <= kMaxGroupName && !has_control_characters(name) &&
                     !find_bad_utf8(name);
  if (plain) return {};
  return fail(Code::kInvalidArgument, "name: of a group has 1 to " + std::to_string(kMaxGroupName) +
                                          " bytes and no control characters");
}

std::vector<UserId> user_ids(const google::protobuf::RepeatedField<std::int32_t>& ids) {
  std::vector<UserId> users;
  for (const int id : ids) users.emplace_back(id);
  return users;
}

}  // namespace

Status show_group(db::Pool& pool, std::int64_t id, v1::GroupDetails* out) {
  TRY_ASSIGN(const db::Group group, db::get_group(pool, id));
  TRY_ASSIGN(const auto members, db::group_members(pool, id));
  out->set_group_id(static_cast<int>(group.id));
  out->set_name(group.name);
  for (const db::User& user : members) to_proto(user, out->add_users());
  return {};
}

GroupService::GroupService(const Context& context) : Service(context, v1::GroupService::full_name) {
  unary(v1::GroupService::CreateGroup, &GroupService::CreateGroup);
  unary(v1::GroupService::GetGroups, &GroupService::GetGroups);
  unary(v1::GroupService::GetGroup, &GroupService::GetGroup);
  unary(v1::GroupService::UpdateGroup, &GroupService::UpdateGroup);
  unary(v1::GroupService::DeleteGroup, &GroupService::DeleteGroup);
  unary(v1::GroupService::AssignMultipleGroups, &GroupService::AssignMultipleGroups);
}

Status GroupService::CreateGroup(const Caller&, const v1::CreateGroupRequest& request,
                                 v1::CreateGroupResponse* response) {
  TRY(check_group_name(request.name()));
  TRY_ASSIGN(const std::int64_t id,
             db::create_group(context_.pool, request.name(), user_ids(request.add_users())));
  return show_group(context_.pool, id, response->mutable_group());
}

Status GroupService::GetGroups(const Caller&, const v1::GetGroupsRequest& request,
                               v1::GetGroupsResponse* response) {
  db::GroupFilter filter{.name = make_utf8(request.name()),
                         .window = to_window(request.offset(), request.limit(), v1::ORDER_BY_ASC, -1)};
  if (request.user_id() != 0) filter.user = UserId(request.user_id());
  TRY_ASSIGN(const auto page, db::list_groups(context_.pool, filter));
  for (const db::Group& group : page.rows) {
    v1::GroupSearchResult* out = response->add_groups();
    out->mutable_group()->set_group_id(static_cast<int>(group.id));
    out->mutable_group()->set_name(group.name);
    out->set_num_members(static_cast<int>(group.members));
  }
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status GroupService::GetGroup(const Caller&, const v1::GetGroupRequest& request,
                              v1::GetGroupResponse* response) {
  return show_group(context_.pool, request.group_id(), response->mutable_group());
}

Status GroupService::UpdateGroup(const Caller&, const v1::UpdateGroupRequest& request,
                                 v1::UpdateGroupResponse* response) {
  db::GroupChange change{.add = user_ids(request.add_users()), .remove = user_ids(request.remove_users())};
  if (!request.name().empty()) {
    TRY(check_group_name(request.name()));
    change.name = request.name();
  }
  TRY(db::change_group(context_.pool, request.group_id(), change));
  return show_group(context_.pool, request.group_id(), response->mutable_group());
}

Status GroupService::DeleteGroup(const Caller&, const v1::DeleteGroupRequest& request,
                                 v1::DeleteGroupResponse*) {
  return db::delete_group(context_.pool, request.group_id());
}

Status GroupService::AssignMultipleGroups(const Caller&, const v1::AssignMultipleGroupsRequest& request,
                                          v1::AssignMultipleGroupsResponse*) {
  return db::assign_groups(context_.pool, user_ids(request.user_ids()),
                           {request.add_groups().begin(), request.add_groups().end()},
                           {request.remove_groups().begin(), request.remove_groups().end()});
}

}  // namespace det::api
