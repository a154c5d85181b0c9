#include "cli/submit/checked_config.h"

#include "common/base/files.h"

namespace det::cli {

Result<CheckedConfig> check_config(const std::string& path, const std::vector<expconf::Override>& overrides,
                                   const std::optional<expconf::Document>& config_template) {
  const auto text = read_file(path, 64 << 20);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  // The default storage of the cluster is not known here, and without one the configuration would be refused.
  expconf::Defaults defaults{
      .checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/"}}, .experiment_seed = 0, .name = ""};
  defaults.template_ = config_template;
  TRY_ASSIGN(expconf::Parsed parsed, expconf::parse(*text, path, defaults, overrides));
  TRY_ASSIGN(std::string applied, expconf::apply_overrides(*text, path, overrides));
  return CheckedConfig{std::move(applied), std::move(parsed.config)};
}

}  // namespace det::cli
