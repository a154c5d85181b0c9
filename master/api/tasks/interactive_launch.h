// Configurations of interactive tasks: the program that the cluster runs for each kind.
#pragma once

#include <string>

#include "common/base/json.h"
#include "common/base/result.h"
#include "common/expconf/command.h"
#include "master/db/queries/commands.h"

namespace det::api {

struct Context;

/// Program of an interactive task, in the form of a command.
struct InteractiveConfig {
  Json command;  ///< configuration of the command
  db::InteractiveTask task;
};

/// Adds the program of `kind` to the configuration of a request. `id`: the task id. `port` and `token`: of
/// its HTTP server; not used by a shell. Errors: kInvalidArgument for settings that the cluster chooses
/// (entrypoint, environment.proxy_ports) and for an idle timeout that is none. Pure.
Result<InteractiveConfig> interactive_config(const std::string& kind, Json config, const std::string& id,
                                             int port, const std::string& token);

/// Returns the directories of the event files of experiments and trials, as a list of {base, below, name}.
/// Blocks on the database. Errors: kNotFound; kInvalidArgument without experiment and trial, or with more
/// than 100; kFailedPrecondition for a storage that is not a directory which agents share.
Result<Json> event_files_of(const Context& context, const db::InteractiveTask& task);

/// Returns a port for the server of a task. Random, because tasks of one machine share its ports, and outside
/// of the ranges of the kernel and of gangs.
int random_task_port();

/// Path of a task's page below the master's address; "" for a shell. With `secret` it contains the token that
/// a notebook requires. `config` is the stored configuration.
std::string service_address(const db::CommandRow& row, bool secret);

}  // namespace det::api
