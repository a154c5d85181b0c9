// First start: creation of the user admin, of the join token of this machine and of the key of stored
// secrets.
#pragma once

#include "common/base/result.h"
#include "master/config/options.h"
#include "master/db/pg/pool.h"

namespace det {

/// Creates the user admin if the database has no user. The password comes from admin_password_file. Without
/// one it is random, is stored in DATA_DIR/admin-password (mode 0600), and is printed once on a terminal,
/// never to the log. Idempotent, also after a crash. Errors: unreadable or too short password file, database
/// errors.
Status create_admin(db::Pool& pool, const MasterConfig& config);

/// Name of the file in DATA_DIR with the join token for agents on the machine of the master.
inline constexpr const char* kLocalJoinToken = "agent-join-token";
/// Reads the join token of this machine from DATA_DIR, or creates it (mode 0600). `pin` is the fingerprint of
/// the master's certificate, "" without TLS; a file with another one is rewritten. Returns the hash of the
/// token. Removing the file replaces the token at the next start. Errors: files.
Result<std::string> load_local_join_token(const MasterConfig& config, const std::string& pin);

/// Opens the keys of stored secrets, or creates them (mode 0600), and encrypts what is stored in plain or
/// with an older key. Must precede all other access to configurations. Errors: files; kDataLoss (a key is
/// missing); those of the database.
Status protect_secrets(const MasterConfig& config, db::Pool& pool);

}  // namespace det
