// First start: creation of the user admin.
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

}  // namespace det
