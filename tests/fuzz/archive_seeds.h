// Owns the first inputs of the archive fuzz target, made by code so that no binary file is kept in the tree.
#pragma once

#include <map>
#include <string>

namespace det::fuzz {

std::map<std::string, std::string> archive_seeds();

}  // namespace det::fuzz
