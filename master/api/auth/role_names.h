// Public names and ids of the roles. They are those of Determined AI.
#pragma once

#include <array>
#include <string_view>

#include "common/base/text.h"
#include "master/db/accounts/roles.h"

namespace det::api {

/// A role as clients see it.
struct ShownRole {
  db::Role role;
  int id;
  std::string_view name;
};
// Ordered by id.
inline constexpr std::array<ShownRole, 7> kRoles = {
    {{db::Role::kClusterAdmin, 1, "ClusterAdmin"},
     {db::Role::kWorkspaceAdmin, 2, "WorkspaceAdmin"},
     {db::Role::kWorkspaceCreator, 3, "WorkspaceCreator"},
     {db::Role::kViewer, 4, "Viewer"},
     {db::Role::kEditor, 5, "Editor"},
     {db::Role::kModelRegistryViewer, 6, "ModelRegistryViewer"},
     {db::Role::kEditorRestricted, 7, "EditorRestricted"}}};

/// Whether a role holds for the whole cluster only.
inline bool is_cluster_only(db::Role role) {
  return role == db::Role::kClusterAdmin || role == db::Role::kWorkspaceCreator;
}
/// Returns the public name, e.g. "WorkspaceAdmin"; "" for kNone.
inline std::string_view shown_name(db::Role role) {
  for (const ShownRole& each : kRoles)
    if (each.role == role) return each.name;
  return "";
}
/// Finds a role by name in any case; kNone for unknown names.
inline db::Role role_by_name(std::string_view name) {
  for (const ShownRole& each : kRoles)
    if (to_lower(each.name) == to_lower(name)) return each.role;
  return db::Role::kNone;
}
/// Finds a role by id; kNone for unknown ids.
inline db::Role role_by_id(int id) {
  for (const ShownRole& each : kRoles)
    if (each.id == id) return each.role;
  return db::Role::kNone;
}

}  // namespace det::api
