// QuotaService: limits of users and workspaces.
#pragma once

#include "det/v1/quota.pb.h"
#include "master/api/service.h"

namespace det::api {

class QuotaService final : public Service {
 public:
  explicit QuotaService(const Context& context);
  /// Lists quotas with their use: all for administrators, else those of the caller and of visible workspaces.
  Status GetQuotas(const Caller& caller, const v1::GetQuotasRequest& request,
                   v1::GetQuotasResponse* response);
  /// Sets a quota; it is in effect when the call returns. Idempotent. Errors: kInvalidArgument, kNotFound.
  Status SetQuota(const Caller& caller, const v1::SetQuotaRequest& request, v1::SetQuotaResponse* response);
  /// Removes a quota. Errors: kInvalidArgument, kNotFound.
  Status DeleteQuota(const Caller& caller, const v1::DeleteQuotaRequest& request,
                     v1::DeleteQuotaResponse* response);
};

/// Tells the core the workspace of the experiments in a project, after they or the project have moved. Blocks
/// on the database and the core.
Status place_experiments(const Context& context, std::int64_t project);
/// Errors: kResourceExhausted when an owner has no room for metric series or checkpoints. Blocks on the
/// database if there are such quotas.
Status check_data_quotas(const Context& context, const db::TaskOwner& owner);

}  // namespace det::api
