// Maps the header and the names of Catch2 2 (which Debian 12 ships) to Catch2 3. On the include path where
// find_package finds version 3.
#pragma once

#include <catch2/catch_all.hpp>
#include <string>

using Catch::Approx;

namespace Catch {

using Matchers::EndsWith;
using Matchers::StartsWith;
inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }

}  // namespace Catch
