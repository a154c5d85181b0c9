// The precompiled header of the training library, an entry of the build cache.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/build/compiler.h"
#include "common/build/recipe.h"

namespace det::build {

/// Returns the path of the precompiled header; "" if the recipe has none, its compiler is not installed, or
/// the compiler rejects the header; nothing if it has not been made. Thread-safe.
Result<std::optional<std::string>> find_precompiled_header(const Recipe& recipe,
                                                           const std::string& models_dir);

/// Makes the precompiled header (about 150 MB) unless it exists or another call, also of another process,
/// makes it. Takes about 10 s of CPU time, at the lowest priority. Errors: kCancelled (`stop` requested),
/// kDeadlineExceeded (`deadline` has passed), kUnavailable (files, a killed compiler). Blocks. Thread-safe.
Status make_precompiled_header(const Recipe& recipe, const std::string& models_dir, MonoTime deadline,
                               const std::stop_token& stop);

/// Removes the header, which then has to be made again.
Status discard_precompiled_header(const std::string& path);

/// Returns the text of `compiler --version`; nothing if the compiler is not installed. Errors: those of
/// run_process().
Result<std::optional<std::string>> compiler_version(const std::string& compiler);

}  // namespace det::build
