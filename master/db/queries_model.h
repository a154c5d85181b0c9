// Owns context archives, stored by the SHA-256 of their bytes.
#pragma once

#include "master/db/queries.h"

namespace det::db {

/// Stores a tar.gz and returns its digest. Repeats safely.
Result<std::string> put_model_definition(Pool& pool, std::string_view tgz);
/// kNotFound.
Result<std::string> get_model_definition(Pool& pool, const std::string& digest);
/// kNotFound when there is no such experiment, or it has none.
Result<std::string> get_model_definition(Pool& pool, ExperimentId experiment);
/// kNotFound also when no experiment of `owner` has it.
Result<std::string> get_own_model_definition(Pool& pool, const std::string& digest, UserId owner);

}  // namespace det::db
