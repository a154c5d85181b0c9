// Loads the input of the retention policy from the database.
#pragma once

#include "common/base/result.h"
#include "master/db/pg/pool.h"
#include "master/gc/policy.h"

namespace det::gc {

/// Loads the input of the retention policy for an experiment: settings, trials and checkpoints with files.
/// Leaves out checkpoints of an unmanaged experiment, because their files belong to the user. Blocks on the
/// database. Errors: kNotFound.
Result<Books> load_books(db::Pool& pool, ExperimentId id);

}  // namespace det::gc
