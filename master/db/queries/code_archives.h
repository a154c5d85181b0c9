// Code archives: files of submissions, addressed by the SHA-256 of their bytes.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// Stores a tar.gz and returns its digest in hex. Idempotent.
Result<std::string> put_code_archive(Pool& pool, std::string_view tgz);
/// Returns an archive by digest. kNotFound.
Result<std::string> get_code_archive(Pool& pool, const std::string& digest);
/// Returns the archive of an experiment. kNotFound: no such experiment, or it has no archive.
Result<std::string> get_code_archive(Pool& pool, ExperimentId experiment);
/// Returns an archive that an experiment of `owner` uses. kNotFound otherwise: a digest alone gives no access
/// to the files of another user.
Result<std::string> get_own_code_archive(Pool& pool, const std::string& digest, UserId owner);

}  // namespace det::db
