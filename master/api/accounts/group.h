// GroupService: groups of users. Administrators change them, every user may read them.
#pragma once

#include "det/v1/group.pb.h"
#include "master/api/service.h"

namespace det::api {

class GroupService final : public Service {
 public:
  explicit GroupService(const Context& context);
  /// Creates a group. Errors: kInvalidArgument, kAlreadyExists, kNotFound (a user).
  Status CreateGroup(const Caller& caller, const v1::CreateGroupRequest& request,
                     v1::CreateGroupResponse* response);
  /// Lists groups by id.
  Status GetGroups(const Caller& caller, const v1::GetGroupsRequest& request,
                   v1::GetGroupsResponse* response);
  /// Returns a group with its members. Errors: kNotFound.
  Status GetGroup(const Caller& caller, const v1::GetGroupRequest& request, v1::GetGroupResponse* response);
  /// Changes name and members, all or nothing. Errors: as CreateGroup; kNotFound also for a removed user that
  /// is no member.
  Status UpdateGroup(const Caller& caller, const v1::UpdateGroupRequest& request,
                     v1::UpdateGroupResponse* response);
  /// Deletes a group with its roles. Errors: kNotFound.
  Status DeleteGroup(const Caller& caller, const v1::DeleteGroupRequest& request,
                     v1::DeleteGroupResponse* response);
  /// Adds users to groups and removes them from others. Idempotent. Errors: kNotFound.
  Status AssignMultipleGroups(const Caller& caller, const v1::AssignMultipleGroupsRequest& request,
                              v1::AssignMultipleGroupsResponse* response);
};

/// Reads a group and its members. Errors: kNotFound. Blocks on the database.
Status show_group(db::Pool& pool, std::int64_t id, v1::GroupDetails* out);

}  // namespace det::api
