// Owns reading whose checkpoint it is: of a manifest, and of the mark of an upload.
#pragma once

#include "base/json.h"
#include "storage/work.h"

namespace det::storage {

/// Of an object; cluster "" when it does not say.
Owner read_owner(const Json& manifest);

}  // namespace det::storage
