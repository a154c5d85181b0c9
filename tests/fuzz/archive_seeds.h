// Seeds of the archive fuzz target, generated to keep binary files out of the tree.
#pragma once

#include <map>
#include <string>

namespace det::fuzz {

std::map<std::string, std::string> archive_seeds();

}  // namespace det::fuzz
