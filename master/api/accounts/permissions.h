// Permissions of roles in the words of Determined AI, for display. access.h decides about calls.
#pragma once

#include "master/api/auth/role_names.h"

namespace det::api {

struct Permission {
  const char *id, *name;
  db::Role least;             ///< this role and the ones above it have the permission
  bool cluster_only = false;  ///< not in a workspace
};

inline constexpr Permission kPermissions[] = {
    {"PERMISSION_TYPE_CREATE_WORKSPACE", "create workspace", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_VIEW_MODEL_REGISTRY", "view model registry", db::Role::kModelRegistryViewer},
    {"PERMISSION_TYPE_VIEW_WORKSPACE", "view workspace", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_PROJECT", "view project", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_EXPERIMENT_METADATA", "view experiment metadata", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_EXPERIMENT_ARTIFACTS", "view experiment artifacts", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_NSC", "view commands and tasks", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_TEMPLATES", "view templates", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_GLOBAL_CONFIG_POLICIES", "view config policies of the cluster", db::Role::kViewer},
    {"PERMISSION_TYPE_VIEW_WORKSPACE_CONFIG_POLICIES", "view config policies of the workspace",
     db::Role::kViewer},
    {"PERMISSION_TYPE_CREATE_EXPERIMENT", "create experiment", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_UPDATE_EXPERIMENT", "update experiment", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_UPDATE_EXPERIMENT_METADATA", "update experiment metadata", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_DELETE_EXPERIMENT", "delete experiment", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_CREATE_PROJECT", "create project", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_UPDATE_PROJECT", "update project", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_CREATE_MODEL_REGISTRY", "create model", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_EDIT_MODEL_REGISTRY", "edit model", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_DELETE_MODEL_REGISTRY", "delete model", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_DELETE_MODEL_VERSION", "delete model version", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_CREATE_TEMPLATES", "create templates", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_UPDATE_TEMPLATES", "update templates", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_DELETE_TEMPLATES", "delete templates", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_VIEW_WEBHOOKS", "view webhooks", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_EDIT_WEBHOOKS", "edit webhooks", db::Role::kEditorRestricted},
    {"PERMISSION_TYPE_CREATE_NSC", "start commands and tasks", db::Role::kEditor},
    {"PERMISSION_TYPE_UPDATE_NSC", "change commands and tasks", db::Role::kEditor},
    {"PERMISSION_TYPE_UPDATE_WORKSPACE", "update workspace", db::Role::kWorkspaceAdmin},
    {"PERMISSION_TYPE_DELETE_WORKSPACE", "delete workspace", db::Role::kWorkspaceAdmin},
    {"PERMISSION_TYPE_SET_WORKSPACE_CHECKPOINT_STORAGE_CONFIG", "set checkpoint storage of the workspace",
     db::Role::kWorkspaceAdmin},
    {"PERMISSION_TYPE_DELETE_PROJECT", "delete project", db::Role::kWorkspaceAdmin},
    {"PERMISSION_TYPE_ASSIGN_ROLES", "assign roles", db::Role::kWorkspaceAdmin},
    {"PERMISSION_TYPE_MODIFY_WORKSPACE_CONFIG_POLICIES", "modify config policies of the workspace",
     db::Role::kWorkspaceAdmin},
    {"PERMISSION_TYPE_ADMINISTRATE_USER", "administrate users", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_ADMINISTRATE_TOKEN", "administrate access tokens", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_UPDATE_GROUP", "update groups", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_UPDATE_AGENTS", "update agents", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_VIEW_MASTER_LOGS", "view the log of the master", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_VIEW_MASTER_CONFIG", "view settings of the master", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_UPDATE_MASTER_CONFIG", "update settings of the master", db::Role::kClusterAdmin, true},
    {"PERMISSION_TYPE_MODIFY_GLOBAL_CONFIG_POLICIES", "modify config policies of the cluster",
     db::Role::kClusterAdmin, true}};

inline bool permits(db::Role role, const Permission& permission) {
  // The role WorkspaceCreator is beside the ladder: it has the first permission only.
  if (role == db::Role::kWorkspaceCreator) return &permission == &kPermissions[0];
  return role >= permission.least;
}

}  // namespace det::api
