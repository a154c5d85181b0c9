// `det resource-pool`: pools and their bindings to workspaces.
#include <algorithm>
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/binding.methods.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/workspace.methods.h"

namespace det::cli {
namespace {

Status list_pools(Client& client, const ListOutput& output) {
  TRY_ASSIGN(const auto response,
             client.call(v1::ClusterService::GetResourcePools, v1::GetResourcePoolsRequest()));
  Table table{{"Name", "Agents", "Slots", "Used", "Default", "Description"}, {}, {0}};
  for (const v1::ResourcePool& each : response.resource_pools()) {
    table.rows.push_back({each.name(), std::to_string(each.num_agents()),
                          std::to_string(each.slots_available()), std::to_string(each.slots_used()),
                          yes_or_no(each.default_compute_pool()), each.description()});
  }
  return output.print(table, [&] { return list_to_json(response.resource_pools()); });
}

struct BoundPoolOptions {
  std::string pool;
  void declare(CLI::App& app) { app.add_option("POOL", pool, "Resource pool.")->required(); }
};

struct BindingOptions : BoundPoolOptions {
  std::vector<std::string> workspaces;
  void declare(CLI::App& app) {
    BoundPoolOptions::declare(app);
    app.add_option("WORKSPACE", workspaces, "Names of workspaces.")->required();
  }
  v1::WorkspaceBindingsRequest request() const {
    v1::WorkspaceBindingsRequest request;
    request.set_resource_pool_name(pool);
    request.mutable_workspace_names()->Assign(workspaces.begin(), workspaces.end());
    return request;
  }
};

Status add_bindings(Client& client, const BindingOptions& options) {
  TRY(client.call(v1::BindingService::BindRPToWorkspace, options.request()));
  std::cout << "Bound " << printable(options.pool) << " to " << printable(join(options.workspaces, ", "))
            << '\n';
  return {};
}

Status remove_bindings(Client& client, const BindingOptions& options) {
  TRY(client.call(v1::BindingService::UnbindRPFromWorkspace, options.request()));
  std::cout << "Unbound " << printable(options.pool) << " from " << printable(join(options.workspaces, ", "))
            << '\n';
  return {};
}

Status replace_bindings(Client& client, const BindingOptions& options) {
  TRY(client.call(v1::BindingService::OverwriteRPWorkspaceBindings, options.request()));
  std::cout << printable(options.pool) << " is bound to " << printable(join(options.workspaces, ", "))
            << " only\n";
  return {};
}

struct BoundListOptions : BoundPoolOptions {
  ListOutput output;
  void declare(CLI::App& app) {
    BoundPoolOptions::declare(app);
    output.declare(app);
  }
};

/// Lists the workspaces of a pool that the caller may see.
Status list_bound_workspaces(Client& client, const BoundListOptions& options) {
  v1::ListWorkspacesBoundToRPRequest request;
  request.set_resource_pool_name(options.pool);
  TRY_ASSIGN(const auto bound, client.call(v1::BindingService::ListWorkspacesBoundToRP, request));
  TRY_ASSIGN(const auto all, client.call(v1::WorkspaceService::GetWorkspaces, v1::GetWorkspacesRequest()));
  Table table{{"ID", "Name"}, {}, {1}};
  std::vector<v1::Workspace> workspaces;
  for (const v1::Workspace& each : all.workspaces()) {
    const auto& ids = bound.workspace_ids();
    if (std::find(ids.begin(), ids.end(), each.id()) == ids.end()) continue;
    table.rows.push_back({std::to_string(each.id()), each.name()});
    workspaces.push_back(each);
  }
  return options.output.print(table, [&] { return list_to_json(workspaces); });
}

}  // namespace

Command resource_pool_command() {
  return {{"resource-pool", "rp"},
          "List resource pools, and bind them to workspaces.",
          {},
          {{{"list", "ls"}, "List resource pools.", action(list_pools)},
           {{"bindings", "b"},
            "Manage the workspaces whose work a pool runs. Without bindings it runs work of all.",
            {},
            {{{"add"}, "Bind a pool to workspaces.", action(add_bindings)},
             {{"remove"}, "Remove bindings of a pool.", action(remove_bindings)},
             {{"replace"}, "Bind a pool to these workspaces only.", action(replace_bindings)},
             {{"list-workspaces"}, "List the workspaces of a pool.", action(list_bound_workspaces)}}}}};
}

}  // namespace det::cli
