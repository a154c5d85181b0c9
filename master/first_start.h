// Owns the first user: made once, with a password from the operator or one that nobody can guess.
#pragma once

#include "base/result.h"
#include "master/config/options.h"
#include "master/db/pool.h"

namespace det {

/// Makes the user admin when the database has no user. Without an operator's file the password is written to
/// DATA_DIR/admin-password (mode 0600) and told once on standard error, never to the log. Repeats safely.
Status create_admin(db::Pool& pool, const MasterConfig& config);

}  // namespace det
