#include "master/api/cluster/quota.h"

#include <algorithm>

#include "common/base/text.h"
#include "det/v1/quota.methods.h"
#include "master/api/cluster/quota_meter.h"
#include "master/db/accounts/quotas.h"
#include "master/db/accounts/users.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

using core::QuotaResource;
using Scope = scheduler::QuotaKey::Scope;
using Key = std::pair<scheduler::QuotaKey, QuotaResource>;

/// Reads the names of a request. Errors: kInvalidArgument.
template <typename Request>
Result<Key> key_of(const Request& request) {
  const auto scope = core::parse_scope(request.scope());
  if (!scope)
    return fail(Code::kInvalidArgument,
                "scope: must be user or workspace, not \"" + make_utf8(request.scope()) + "\"");
  const auto resource = core::parse_resource(request.resource());
  if (resource) return Key({*scope, request.id()}, *resource);
  std::vector<std::string> names;
  for (const QuotaResource one : core::kQuotaResources) names.emplace_back(core::resource_name(one));
  return fail(Code::kInvalidArgument, "resource: must be one of " + join(names, ", ") + ", not \"" +
                                          make_utf8(request.resource()) + "\"");
}

bool may_see(const Caller& caller, const scheduler::QuotaKey& of) {
  if (caller.grants.everywhere() == db::Role::kClusterAdmin) return true;
  if (of.scope == Scope::kUser) return of.id == caller.user.id.value;
  return caller.grants.in(of.id) >= db::Role::kViewer;
}

/// Slots and live experiments of every owner with a quota.
std::map<Key, std::int64_t> use_in_core(const core::Core& core) {
  std::map<Key, std::int64_t> use;
  for (const auto& [key, limit] : core.quotas()) {
    const auto& [of, resource] = key;
    if (resource == QuotaResource::kSlots) {
      for (const auto& [name, pool] : core.pools()) use[key] += pool.held(of);
    } else if (resource == QuotaResource::kExperiments) {
      for (const auto& [id, one] : core.experiments())
        use[key] += (of.scope == Scope::kUser ? one.owner.value : one.workspace) == of.id;
    }
  }
  return use;
}

}  // namespace

QuotaService::QuotaService(const Context& context) : Service(context, v1::QuotaService::full_name) {
  unary(v1::QuotaService::GetQuotas, &QuotaService::GetQuotas);
  unary(v1::QuotaService::SetQuota, &QuotaService::SetQuota);
  unary(v1::QuotaService::DeleteQuota, &QuotaService::DeleteQuota);
}

Status QuotaService::GetQuotas(const Caller& caller, const v1::GetQuotasRequest&,
                               v1::GetQuotasResponse* response) {
  auto live = std::make_shared<std::map<Key, std::int64_t>>();
  TRY(context_.loop.inspect([live](const core::Core& core) { *live = use_in_core(core); }));
  TRY_ASSIGN(const auto rows, db::list_quotas(context_.pool));
  for (const db::QuotaRow& row : rows) {
    if (!may_see(caller, row.quota.of)) continue;
    const auto used = live->find({row.quota.of, row.quota.resource});
    v1::Quota* out = response->add_quotas();
    out->set_scope(std::string(core::scope_name(row.quota.of.scope)));
    out->set_id(static_cast<int>(row.quota.of.id));
    out->set_resource(std::string(core::resource_name(row.quota.resource)));
    out->set_limit(row.quota.limit);
    out->set_used(used == live->end() ? row.used : used->second);
    out->set_name(row.name);
  }
  return {};
}

Status QuotaService::SetQuota(const Caller&, const v1::SetQuotaRequest& request, v1::SetQuotaResponse*) {
  TRY_ASSIGN(const Key key, key_of(request));
  if (key.first.scope == Scope::kUser) {
    TRY(db::get_user(context_.pool, UserId(request.id())));
  } else {
    TRY(db::get_workspace(context_.pool, request.id()));
  }
  TRY(context_.loop.ask(core::SetQuota{.of = key.first, .resource = key.second, .limit = request.limit()}));
  return context_.quotas->measure();
}

Status QuotaService::DeleteQuota(const Caller&, const v1::DeleteQuotaRequest& request,
                                 v1::DeleteQuotaResponse*) {
  TRY_ASSIGN(const Key key, key_of(request));
  auto known = std::make_shared<bool>(false);
  TRY(context_.loop.inspect([known, key](const core::Core& core) { *known = core.quotas().contains(key); }));
  if (!*known) return fail(Code::kNotFound, "there is no such quota");
  TRY(context_.loop.ask(core::SetQuota{.of = key.first, .resource = key.second}));
  return context_.quotas->measure();
}

Status place_experiments(const Context& context, std::int64_t project) {
  TRY_ASSIGN(auto live, db::live_experiments(context.pool, project));
  if (live.ids.empty()) return {};
  TRY(context.loop.ask(
      core::PlaceExperiments{.experiments = std::move(live.ids), .workspace = live.workspace}));
  return {};
}

Status check_data_quotas(const Context& context, const db::TaskOwner& owner) {
  for (const QuotaResource resource : {QuotaResource::kMetricSeries, QuotaResource::kCheckpointBytes}) {
    if (context.quotas->check(resource, owner)) continue;
    // The owner may have made room since the last measurement.
    TRY(context.quotas->measure());
    TRY(context.quotas->check(resource, owner));
  }
  return {};
}

}  // namespace det::api
