// Owns what must hold for any bytes that come over the network behind the transport: HTTP requests on their
// way to a call, and messages of agents and trials on their way to the core. A target returns when all is
// well and aborts, with a line on standard error, when not.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace det::fuzz {

/// "VERB target\nbody": finds the route and makes the message. A refusal names what is wrong and is nobody's
/// fault but the caller's; what was understood can be sent, and shown as JSON that is understood as the same.
void gateway(std::string_view bytes);

/// A byte that says of whom, then a message in protobuf's wire form: an agent's, a trial's, a batch of log
/// lines. What is let through to the core can be stored and said again.
void wire(std::string_view bytes);

/// Seeds of wire(), by name; those of gateway() are files.
std::vector<std::pair<std::string, std::string>> wire_seeds();

}  // namespace det::fuzz
