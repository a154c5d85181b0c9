// Owns the program that the build runs over the table of access: it fails, and the build with it, while a
// method is without an entry.
#include <cstdio>

#include "master/api/access.h"

int main() {
  const auto gaps = det::api::access_gaps();
  for (const std::string& gap : gaps) std::fprintf(stderr, "master/api/access.cc: %s\n", gap.c_str());
  return gaps.empty() ? 0 : 1;
}
