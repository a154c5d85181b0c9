// Reads the owner of a checkpoint from its manifest or its upload mark.
#pragma once

#include "common/base/json.h"
#include "common/storage/work.h"

namespace det::storage {

/// Returns the "owner" of a manifest or mark (a JSON object); cluster "" if it has none.
Owner read_owner(const Json& manifest);

}  // namespace det::storage
