// Owns what happens between a submission and the core: reading the configuration, checking and packing the
// context, storing it, asking the core.
#pragma once

#include <optional>
#include <string>

#include "det/v1/experiment.pb.h"
#include "master/api/authorize.h"
#include "master/api/context.h"
#include "master/expconf/parse.h"

namespace det::api {

/// `archive` is the context as tar.gz when it came in chunks; else the request's files are packed. Waits for
/// the database and the core. Repeats safely with a request_id. kInvalidArgument carries all problems;
/// nothing is stored then.
Status create_experiment(const Context& context, const Caller& caller,
                         const v1::CreateExperimentRequest& request, std::optional<std::string> archive,
                         v1::CreateExperimentResponse* response);

/// The template as a layer of a configuration; a problem with the nearest names when the caller sees none of
/// the name.
Result<expconf::Document> template_of(const Context& context, const Caller& caller, const std::string& name);

/// "Experiment (word-word-word)".
std::string random_name();

}  // namespace det::api
