// `det task port-forward`: a port of this machine that leads to a port of a task.
#pragma once

#include "cli/command.h"

namespace det::cli {

Command port_forward_command();

/// Port on this machine, 0 for any, and port of the task, 0 for its default one.
struct PortPair {
  int local = 0, task = 0;
};
/// Forwards connections to a local port until the process ends. Prints the port, and with `path` the address
/// of the page there. Errors: those of TaskService.Connect; kAlreadyExists if the local port is taken.
Status forward_port(Client& client, const std::string& task, PortPair ports, const std::string& path = "");

}  // namespace det::cli
