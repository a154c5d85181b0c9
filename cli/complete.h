// Owns what may stand at the cursor of a command line: commands, flags, and the names and ids that the master
// knows.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace det::cli {

struct Candidate {
  std::string text, about;
};

/// For the last of `words` (without the program's name), which may be empty or begun. Asks the master at most
/// once or twice; a failure is no candidates. Nothing also where a file's name belongs: shells complete
/// those.
std::vector<Candidate> complete(std::vector<std::string> words);

}  // namespace det::cli
