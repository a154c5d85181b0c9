// Reads and checks the configuration of an experiment before it is submitted or run on this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/expconf/config.h"
#include "common/expconf/parse.h"

namespace det::cli {

/// A configuration without problems.
struct CheckedConfig {
  std::string text;  ///< the file with overrides applied
  expconf::ExperimentConfig config;
};

/// Reads the file and checks it as far as that is possible without the master. Errors: kInvalidArgument with
/// all problems of the document.
Result<CheckedConfig> check_config(const std::string& path, const std::vector<expconf::Override>& overrides,
                                   const std::optional<expconf::Document>& config_template = std::nullopt);

}  // namespace det::cli
