#include "master/db/queries/code_archives.h"

#include "common/crypto/digest.h"

namespace det::db {

Result<std::string> put_code_archive(Pool& pool, std::string_view tgz) {
  // Content addressing stores a repeated upload once. Its age starts again: db::delete_experiment keeps young
  // archives, because a submission is about to refer to them.
  const std::string digest = sha256_hex(tgz);
  TRY(
      pool.query("INSERT INTO model_definitions (sha256, tgz, size) VALUES ($1, $2, $3)"
                 " ON CONFLICT (sha256) DO UPDATE SET created = now()",
                 digest, Bytes{tgz}, static_cast<std::int64_t>(tgz.size())));
  return digest;
}

Result<std::string> get_code_archive(Pool& pool, const std::string& digest) {
  return value_of<std::string>(pool.query("SELECT tgz FROM model_definitions WHERE sha256 = $1", digest),
                               "model definition " + digest);
}

Result<std::string> get_own_code_archive(Pool& pool, const std::string& digest, UserId owner) {
  // Ownership counts here, not visibility.
  return value_of<std::string>(
      pool.query("SELECT tgz FROM model_definitions m WHERE sha256 = $1 AND EXISTS (SELECT 1 FROM experiments"
                 " WHERE model_definition = m.sha256 AND model_definition <> '' AND owner_id = $2)",
                 digest, owner),
      "model definition " + digest);
}

Result<std::string> get_code_archive(Pool& pool, ExperimentId experiment) {
  TRY_ASSIGN(const Rows rows, pool.query("SELECT m.tgz FROM experiments e JOIN model_definitions m"
                                         " ON m.sha256 = e.model_definition WHERE e.id = $1",
                                         experiment));
  if (rows.empty())
    return fail(Code::kNotFound,
                "experiment " + std::to_string(experiment.value) + " has no model definition");
  return rows[0].next<std::string>();
}

}  // namespace det::db
