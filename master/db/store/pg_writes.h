// Translation of the core's writes into SQL statements. Private to master/db.
#pragma once

#include <vector>

#include "master/core/effect.h"
#include "master/db/pg/pg.h"

namespace det::db {

/// Translates groups of writes into the statements of one transaction, locks first. A row that is written
/// several times is written once, with its final value, at the place of its first write: readers see only
/// whole transactions. The locks are taken in the order of locks.h.
std::vector<Statement> statements_for(const std::vector<const std::vector<core::Write>*>& groups);

}  // namespace det::db
