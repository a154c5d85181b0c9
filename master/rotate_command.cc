#include "rotate_command.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/base/secret.h"
#include "common/crypto/vault.h"
#include "database.h"
#include "first_start.h"
#include "master/db/queries/cluster.h"
#include "master/db/store/at_rest.h"
#include "offline_command.h"

namespace det {
namespace {

constexpr std::size_t kSecretBytes = 32;

/// The commit of the transaction is the moment of the rotation. A key that is proposed before it is dropped
/// by the next start, and one that is not settled after it is settled then.
Status rotate(const MasterConfig& config) {
  TRY_ASSIGN(Database database, open_database(config));
  db::Pool pool(database.connect, 2);
  TRY(protect_secrets(config, pool));
  TRY(db::load_cluster(pool));  // creates the row on a new database
  // The next start creates another join token of this machine. Without the file no agent is refused that has
  // joined before.
  std::error_code ignored;
  std::filesystem::remove(config.data_dir + "/" + kLocalJoinToken, ignored);
  TRY_ASSIGN(Vault vault, Vault::propose(config.secrets_key_file));
  const std::string key = vault.key_id();
  db::use_vault(std::make_shared<const Vault>(std::move(vault)));
  TRY_ASSIGN(const db::Rotated done, db::rotate_stored_secrets(pool, random_bytes(kSecretBytes)));
  TRY(Vault::settle(config.secrets_key_file, key));
  std::printf(
      "Rotated the secret of the cluster and the key of stored secrets (now %s).\n"
      "Read %" PRId64 " configurations. Ended %" PRId64 " logins and access tokens, and %" PRId64
      " join tokens.\n"
      "Older keys stay in %s for older backups; remove their lines when no backup needs them.\n",
      key.c_str(), done.rows, done.sessions, done.join_tokens, config.secrets_key_file.c_str());
  database.store.reset();
  if (database.own) TRY(database.own->stop());
  return {};
}

}  // namespace

int run_rotation(const std::vector<std::string>& arguments) {
  return run_offline({arguments.begin() + 1, arguments.end()}, rotate);
}

}  // namespace det
