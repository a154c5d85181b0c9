// JSON form of the parts of an allocation: a list in rank order, each element
// {"agent", "instance", "address", "slots": [..], "state", "exit": {"kind", "code", "message"} or null},
// plus "daemon": true where it applies, and "token": hash of the token in the newest start. Rows of releases
// with derived tokens have no "token".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "master/core/model.h"

namespace det::db {

/// Serializes the parts of an allocation.
std::string write_parts(const std::vector<core::AllocationPart>& parts);
/// Parses the output of write_parts(). kDataLoss: `text` is malformed.
Result<std::vector<core::AllocationPart>> read_parts(const std::string& text);

/// Returns the stored name of an exit kind, such as "SUCCEEDED".
std::string_view exit_kind_name(core::ExitKind kind);
/// Returns the exit kind with this stored name, or kLost when there is none.
core::ExitKind parse_exit_kind(std::string_view name);

}  // namespace det::db
