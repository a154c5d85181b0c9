// Fuzz targets for network input behind the transport: HTTP requests on their way to a call, and messages of
// agents and trials on their way to the core. A target returns if all its checks hold; otherwise it prints a
// line to standard error and aborts.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace det::fuzz {

/// `bytes` is "VERB target\nbody". Finds the route and builds the message. Checks that a refusal is
/// INVALID_ARGUMENT, and that an accepted message survives serialization and the round trip through JSON.
void gateway(std::string_view bytes);

/// `bytes` is a byte that selects the sender, then a protobuf message: an agent's, a trial's, or a batch of
/// log lines. Checks that accepted messages can be stored and converted back.
void wire(std::string_view bytes);

/// Seeds of wire() by name. The seeds of gateway() are files.
std::vector<std::pair<std::string, std::string>> wire_seeds();

}  // namespace det::fuzz
