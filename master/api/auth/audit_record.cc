#include "master/api/auth/audit_record.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/base/text.h"
#include "det/v1/role.pb.h"
#include "master/api/auth/access.h"
#include "master/api/auth/authorize.h"
#include "master/api/auth/role_names.h"
#include "master/db/accounts/audit.h"

namespace det::api {
namespace {

namespace pb = google::protobuf;
using Names = std::vector<std::string>;

/// "role Editor for group 2 in workspace 3".
std::string assignment_name(const std::string& holder, const v1::RoleAssignment& assignment) {
  const v1::Role& role = assignment.role();
  std::string name(role.role_id() != 0 ? shown_name(role_by_id(role.role_id())) : role.name());
  if (name.empty()) name = std::to_string(role.role_id());
  name = "role " + name + " for " + holder;
  if (assignment.has_scope_workspace_id())
    name += " in workspace " + std::to_string(assignment.scope_workspace_id().value());
  return name;
}

Names assignment_names(const v1::AssignRolesRequest& request) {
  Names names;
  for (const v1::UserRoleAssignment& one : request.user_role_assignments())
    names.push_back(assignment_name("user " + std::to_string(one.user_id()), one.role_assignment()));
  for (const v1::GroupRoleAssignment& one : request.group_role_assignments())
    names.push_back(assignment_name("group " + std::to_string(one.group_id()), one.role_assignment()));
  return names;
}

/// The objects of a request by the rules of its method, e.g. "experiment 7", "project 2".
Names request_names(const Access& access, const pb::Message& request) {
  if (const auto* assignments = dynamic_cast<const v1::AssignRolesRequest*>(&request))
    return assignment_names(*assignments);
  Names names;
  for (const Rule& rule : access.rules()) {
    if (*rule.field == '\0') continue;
    const std::string noun(target_name(rule.target));
    for (const std::string& id : object_ids(rule, request))
      names.push_back(noun + (noun.empty() ? "" : " ") + id);
  }
  // A change that was only checked is none.
  const pb::FieldDescriptor* const check = request.GetDescriptor()->FindFieldByName("validate_only");
  if (check != nullptr && request.GetReflection()->GetBool(request, check)) names.emplace_back("check only");
  return names;
}

/// The objects of a change to several: "7", "8 (refused)".
Names result_names(const pb::Message& response) {
  const Names ids = object_ids({.field = "results.id"}, response);
  const Names errors = object_ids({.field = "results.error"}, response);
  Names names;
  for (std::size_t i = 0; i < ids.size() && i < errors.size(); ++i)
    names.push_back(ids[i] + (errors[i].empty() ? "" : " (refused)"));
  return names;
}

/// What a response describes: the first object with an id ("model version 3"), or its own id ("token 5"). ""
/// if it has none.
std::string created_name(const pb::Message& response) {
  const pb::Descriptor& type = *response.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    std::string noun = field.name(), path = field.name();
    if (field.is_repeated()) continue;
    if (field.message_type() != nullptr) {
      if (field.message_type()->FindFieldByName("id") == nullptr) continue;
      path += ".id";
    } else if (noun.ends_with("_id")) {
      noun.resize(noun.size() - 3);
    } else {
      continue;
    }
    const Names ids = object_ids({.field = path.c_str()}, response);
    if (ids.empty() || ids[0].empty() || ids[0] == "0") continue;
    std::replace(noun.begin(), noun.end(), '_', ' ');
    return noun + " " + ids[0];
  }
  return "";
}

/// The names as one text; those that do not fit are counted.
std::string text_of(const Names& names) {
  constexpr std::size_t kMaxText = 2000;
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (text.size() + names[i].size() > kMaxText)
      return make_utf8(text + (text.empty() ? names[i].substr(0, kMaxText)
                                            : " and " + std::to_string(names.size() - i) + " more"));
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return make_utf8(text);
}

}  // namespace

void audit(db::Pool& pool, const Caller& caller, std::string_view method, const pb::Message* request,
           const Status& outcome, const pb::Message* response) {
  const Access* const entry = access(method);
  if (!entry || !is_change(*entry)) return;
  Names names = request ? request_names(*entry, *request) : Names();
  if (response && outcome) {
    for (std::string& name : result_names(*response)) names.push_back(std::move(name));
    const std::string created = created_name(*response);
    if (!created.empty() && std::find(names.begin(), names.end(), created) == names.end())
      names.push_back(created);
  }
  // The audit log shows "ExperimentService/KillExperiment".
  constexpr std::string_view kPackage = "/det.v1.";
  db::AuditRow row{.username = caller.user.name,
                   .action = std::string(method.substr(method.starts_with(kPackage) ? kPackage.size() : 0)),
                   .object = text_of(names),
                   .outcome = outcome ? "OK" : std::string(code_name(outcome.error().code)),
                   .address = caller.credentials.address};
  // Ids start at 1. An audit row of an unknown user has no user id.
  if (caller.user.id.value != 0) row.user = caller.user.id;
  log::info("audit", {{"user", row.username},
                      {"action", row.action},
                      {"object", row.object},
                      {"outcome", row.outcome},
                      {"address", row.address}});
  if (auto kept = db::add_audit(pool, row); !kept)
    log::error("audit log could not be written", {{"action", row.action}, {"error", kept.error().message}});
}

}  // namespace det::api
