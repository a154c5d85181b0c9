#include "cli/submit/search_config.h"

#include <iostream>

#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/expconf/parse.h"

namespace det::cli {

Result<std::shared_ptr<expconf::ExperimentConfig>> read_search_config(
    const std::string& path, const std::vector<std::string>& overrides) {
  const auto text = read_file(path, 64 << 20);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  std::vector<expconf::Override> assignments;
  for (const std::string& assignment : overrides) assignments.push_back({assignment});
  // A placeholder for the cluster's storage: the search does not depend on it, but the checks require one.
  const expconf::Defaults defaults{
      .checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/"}}, .experiment_seed = 0, .name = ""};
  TRY_ASSIGN(auto parsed, expconf::parse(*text, path, defaults, assignments));
  if (!parsed.warnings.empty()) std::cerr << problem_lines(parsed.warnings);
  return std::make_shared<expconf::ExperimentConfig>(std::move(parsed.config));
}

}  // namespace det::cli
