// Shell completion: commands, flags, and names and ids that the master returns.
#pragma once

#include <string>
#include <vector>

#include "common/client/session.h"

namespace det::cli {

/// A possible completion: the inserted text, and a description for zsh and fish (may be empty).
struct Candidate {
  std::string text, about;
};

/// Returns the completions of the last of `words`, which may be empty or incomplete. `words` excludes the
/// program's name. Queries the master for names and ids. Any failure yields an empty list, as does a position
/// where a file name belongs: shells complete those. Texts with control characters are left out.
std::vector<Candidate> complete(std::vector<std::string> words);

}  // namespace det::cli
