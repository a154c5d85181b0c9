#include "master/api/cluster/diagnosis.h"

#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "det/v1/diagnosis.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/submit/stored_checkpoint.h"
#include "master/db/queries/cluster.h"

namespace det::api {
namespace {

void look_at_storage(const storage::StoragePolicy& policy, v1::StorageDiagnosis& out) {
  const Json& storage = policy.own;
  if (!storage.is_object()) {
    out.set_problem("the master's checkpoint_storage is not set: each experiment must name its own");
    // Not an error: experiments may name their own storage.
    return;
  }
  out.set_type(storage.value("type", std::string()));
  if (storage::is_bucket(storage)) {
    const auto location = storage::read_location(storage);
    if (location) out.set_path(location->name());
    if (const Status good = check_bucket(policy, storage); !good)
      out.set_problem(make_utf8(good.error().message));
    return;
  }
  out.set_path(storage::directory_of(storage));
  if (out.path().empty()) return;
  // A random name, so that concurrent checks do not collide.
  const std::string probe = out.path() + "/.det-doctor-" + uuid4();
  Status written = make_directories(out.path());
  if (written) written = write_file_atomic(probe, "probe");
  if (written) written = remove_tree(probe);
  if (!written) out.set_problem(make_utf8(written.error().message));
  const auto free = free_space(out.path());
  if (free) out.set_free_bytes(*free);
}

/// Measures the query as callers of the pool see it, including the wait for a connection.
Status look_at_database(db::Pool& pool, v1::DatabaseDiagnosis& out) {
  const MonoTime begin = mono_now();
  TRY_ASSIGN(const db::DatabaseFacts facts, db::database_facts(pool));
  out.set_milliseconds(static_cast<double>((mono_now() - begin).count()) / 1000);
  out.set_version(make_utf8(facts.version));
  out.set_bytes(facts.bytes);
  return {};
}

}  // namespace

DiagnosisService::DiagnosisService(const Context& context)
    : Service(context, v1::DiagnosisService::full_name) {
  unary(v1::DiagnosisService::GetDiagnosis, &DiagnosisService::GetDiagnosis, context_.pools.outward);
}

Status DiagnosisService::GetDiagnosis(const Caller&, const v1::GetDiagnosisRequest&,
                                      v1::GetDiagnosisResponse* response) {
  // A storage that does not reply holds a thread, so there is one call at a time.
  if (running_.exchange(true))
    return fail(Code::kUnavailable, "another diagnosis is running; try again in a moment");
  const Status done = look_at_database(context_.pool, *response->mutable_database());
  if (done) {
    look_at_storage(*context_.storages->get(), *response->mutable_storage());
    to_proto(wall_now(), response->mutable_now());
  }
  running_ = false;
  return done;
}

}  // namespace det::api
