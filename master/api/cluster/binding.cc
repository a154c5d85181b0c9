#include "master/api/cluster/binding.h"

#include <algorithm>

#include "common/base/text.h"
#include "det/v1/binding.methods.h"
#include "master/api/experiments/facts.h"
#include "master/api/page.h"

namespace det::api {
namespace {

constexpr int kMaxBindings = 10'000;  // of one call

/// Returns the workspaces that a request names. Errors: kInvalidArgument, kNotFound.
Result<std::vector<std::int64_t>> workspaces_of(const Context& context,
                                                const v1::WorkspaceBindingsRequest& request) {
  if (request.workspace_ids_size() + request.workspace_names_size() > kMaxBindings)
    return fail(Code::kInvalidArgument, "workspaceIds, workspaceNames: at most 10,000");
  std::vector<std::int64_t> found;
  for (const int id : request.workspace_ids()) {
    TRY(db::get_workspace(context.pool, id));
    found.push_back(id);
  }
  for (const std::string& name : request.workspace_names()) {
    TRY_ASSIGN(const auto page, db::list_workspaces(context.pool, {.exact_name = make_utf8(name)}));
    if (page.rows.empty()) return fail(Code::kNotFound, "workspace \"" + make_utf8(name) + "\" not found");
    found.push_back(page.rows.front().id);
  }
  return found;
}

}  // namespace

BindingService::BindingService(const Context& context) : Service(context, v1::BindingService::full_name) {
  unary(v1::BindingService::BindRPToWorkspace, &BindingService::change<db::BindingChange::kAdd>);
  unary(v1::BindingService::OverwriteRPWorkspaceBindings,
        &BindingService::change<db::BindingChange::kReplace>);
  unary(v1::BindingService::UnbindRPFromWorkspace, &BindingService::change<db::BindingChange::kRemove>);
  unary(v1::BindingService::ListWorkspacesBoundToRP, &BindingService::list_workspaces);
  unary(v1::BindingService::ListRPsBoundToWorkspace, &BindingService::list_pools);
  unary(v1::BindingService::GetKubernetesResourceManagers,
        &BindingService::none<v1::KubernetesRequest, v1::GetKubernetesResourceManagersResponse>);
  unary(v1::BindingService::ListWorkspaceIDsWithDefaultBindings,
        &BindingService::none<v1::KubernetesRequest, v1::ListWorkspaceIDsWithDefaultBindingsResponse>);
  unary(v1::BindingService::ListWorkspaceNamespaceBindings,
        &BindingService::none<v1::KubernetesWorkspaceRequest, v1::ListWorkspaceNamespaceBindingsResponse>);
  unary(v1::BindingService::GetKubernetesResourceQuotas,
        &BindingService::none<v1::KubernetesWorkspaceRequest, v1::GetKubernetesResourceQuotasResponse>);
}

template <typename Request, typename Response>
Status BindingService::none(const Caller&, const Request&, Response*) {
  return {};
}

Result<std::vector<std::string>> BindingService::pool_names() const {
  TRY_ASSIGN(const auto shapes, Pools(context_).take());
  std::vector<std::string> names;
  for (const scheduler::PoolShape& pool : shapes) names.push_back(pool.name);
  return names;
}

Status BindingService::check_pool(const std::string& name) const {
  TRY_ASSIGN(const auto names, pool_names());
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return fail(Code::kNotFound, "resource pool " + make_utf8(name) + " not found");
}

template <db::BindingChange kChange>
Status BindingService::change(const Caller&, const v1::WorkspaceBindingsRequest& request,
                              v1::WorkspaceBindingsResponse*) {
  const std::string& name = request.resource_pool_name();
  TRY(check_pool(name));
  if (name == context_.settings.default_pool)
    return fail(Code::kInvalidArgument,
                "default resource pool " + name + " cannot be bound to any workspace");
  TRY_ASSIGN(const auto workspaces, workspaces_of(context_, request));
  if (workspaces.empty() && kChange != db::BindingChange::kReplace)
    return fail(Code::kInvalidArgument, "workspaceIds, workspaceNames: name at least one");
  return db::change_bindings(context_.pool, name, kChange, workspaces);
}

Status BindingService::list_workspaces(const Caller& caller,
                                       const v1::ListWorkspacesBoundToRPRequest& request,
                                       v1::ListWorkspacesBoundToRPResponse* response) {
  TRY(check_pool(request.resource_pool_name()));
  TRY_ASSIGN(auto bound, db::bound_workspaces(context_.pool, request.resource_pool_name()));
  std::erase_if(bound, [&](std::int64_t id) { return caller.grants.in(id) < db::Role::kViewer; });
  for (const std::int64_t id : page_of(std::move(bound), request, response->mutable_pagination()))
    response->add_workspace_ids(static_cast<int>(id));
  return {};
}

Status BindingService::list_pools(const Caller&, const v1::ListRPsBoundToWorkspaceRequest& request,
                                  v1::ListRPsBoundToWorkspaceResponse* response) {
  TRY_ASSIGN(auto names, pool_names());
  TRY_ASSIGN(const auto closed, db::closed_pools(context_.pool, request.workspace_id()));
  std::erase_if(names, [&](const std::string& name) { return closed.contains(name); });
  for (std::string& name : page_of(std::move(names), request, response->mutable_pagination()))
    response->add_resource_pools(std::move(name));
  return {};
}

Status check_pool_open(const Context& context, const std::string& pool, std::int64_t workspace) {
  TRY_ASSIGN(const auto closed, db::closed_pools(context.pool, workspace));
  if (!closed.contains(pool)) return {};
  return fail(Code::kInvalidArgument, "resource pool " + make_utf8(pool) + " is not open to workspace " +
                                          std::to_string(workspace) + "; an administrator can bind it");
}

}  // namespace det::api
