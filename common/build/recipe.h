// How trials are compiled against the installed training library, as share/det/model_build.json describes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace det::build {

/// A faster compiler that loads LibTorch and det.h from a precompiled header: 3 s per trial instead of 17 s.
/// It is optional on the machine of a build, and need not accept all sources that Recipe::compiler accepts.
struct Precompiled {
  std::string compiler;
  std::vector<std::string> cxx_flags;
  std::vector<std::string> header_flags;  ///< further flags while the header is compiled
  std::string header;                     ///< path of the header
};

/// How to compile against the installed training library.
struct Recipe {
  std::string sdk_id;
  /// LibTorch of the training library and its kind, such as "LibTorch 2.6.0, CUDA 12.4". Empty in
  /// files of earlier releases.
  std::string library;
  std::string compiler;
  std::vector<std::string> cxx_flags, include_dirs, link_flags;
  /// Source that includes the trial's; "{module}" and "{class}" stand for its names.
  std::string wrapper;
  std::optional<Precompiled> precompiled;
};

/// Reads <prefix>/share/det/model_build.json. "{prefix}" in flags and paths becomes the prefix of `path`.
/// Errors: kDataLoss, unreadable file.
Result<Recipe> read_recipe(const std::string& path);

/// Returns " (LibTorch 2.6.0, without CUDA)" for the training library beside a program; empty when none is
/// installed there. `prefix` is the directory of bin/.
std::string library_note(const std::string& prefix);

/// Returns the command that compiles standard input: compiler, flags and include directories. It runs in the
/// directory of the trial's sources, so that messages show paths relative to it.
std::vector<std::string> compile_command(const Recipe& recipe, const std::string& compiler,
                                         const std::vector<std::string>& cxx_flags);

/// Replaces all occurrences of `what` by `by`.
std::string replace_all(std::string text, std::string_view what, std::string_view by);

}  // namespace det::build
