// Detached mode: creates an experiment with this process as its trial, using the login of the det command.
#include <google/protobuf/util/json_util.h>

#include <memory>

#include "common/client/channel.h"
#include "common/client/session.h"
#include "common/client/trust.h"
#include "det/v1/experiment.methods.h"
#include "harness/src/client/client.h"

namespace det {
namespace {

/// The master may still be starting.
constexpr Duration kPatience = std::chrono::seconds(30);

Result<std::unique_ptr<Client>> make(const DetachedRequest& request, DetachedTrial& trial) {
  cli::Session session;
  session.master_flag = request.master;
  session.user_flag = request.user;
  TRY_ASSIGN(cli::Client* const connection, session.client());
  connection->set_patience(kPatience);
  v1::CreateExperimentRequest create;
  create.set_config(request.config);
  create.set_config_name("DetachedConfig");
  create.set_request_id(request.request_id);
  create.set_activate(true);
  // Active at once, but without slots: the scheduler ignores detached experiments.
  create.set_detached(true);
  TRY_ASSIGN(const v1::CreateExperimentResponse created,
             connection->call(v1::ExperimentService::CreateExperiment, create));
  if (created.experiment().trial_ids_size() != 1) {
    return fail(Code::kFailedPrecondition, "the master made experiment " +
                                               std::to_string(created.experiment().id()) +
                                               " without its trial; is it of this release?");
  }
  trial.master = connection->address().tls ? connection->address().url() : connection->address().target();
  trial.experiment_id = created.experiment().id();
  trial.trial_id = created.experiment().trial_ids(0);
  if (!google::protobuf::util::MessageToJsonString(created.config(), &trial.experiment_config).ok()) {
    return fail(Code::kInternal, "the experiment's configuration is no JSON");
  }
  ClusterAddress address{
      .master = trial.master, .trial_id = static_cast<std::int32_t>(trial.trial_id), .run = 1};
  // The trial reports with the owner's login, since it has no allocation.
  address.user_token = connection->token();
  address.cert_file = cli::known_trust(connection->address()).cert_file;
  return std::unique_ptr<Client>(det_make_cluster_client(&address));
}

}  // namespace
}  // namespace det

extern "C" det::Client* det_make_detached_client(const det::DetachedRequest* request,
                                                 det::DetachedTrial* trial) {
  auto client = det::make(*request, *trial);
  if (client) return client->release();
  trial->error = client.error().message;
  return nullptr;
}
