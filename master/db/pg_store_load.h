// Owns reading back what a master needs to go on. Not for other rooms.
#pragma once

#include "master/core/core.h"
#include "master/db/pg.h"

namespace det::db {

/// Everything not ended, and the next ids. kDataLoss when a stored configuration cannot be read.
Result<core::Recovered> load_recovered(Connection& connection);

}  // namespace det::db
