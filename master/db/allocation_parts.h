// Owns the stored form of an allocation's parts: a JSON list in the order of ranks, each
// {"agent", "instance", "address", "slots": [..], "state", "exit": {"kind", "code", "message"} or null}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "master/core/model.h"

namespace det::db {

std::string write_parts(const std::vector<core::AllocationPart>& parts);
/// kDataLoss when `text` is no such list.
Result<std::vector<core::AllocationPart>> read_parts(const std::string& text);

std::string_view exit_kind_name(core::ExitKind kind);   ///< "SUCCEEDED" …
core::ExitKind parse_exit_kind(std::string_view name);  ///< kLost for what is no kind

}  // namespace det::db
