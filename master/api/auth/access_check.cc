// Build step: prints the defects of the access table (access.h) and fails the build if there are any.
#include <cstdio>

#include "master/api/auth/access.h"

int main() {
  const auto gaps = det::api::access_gaps();
  for (const std::string& gap : gaps) std::fprintf(stderr, "master/api/auth/access.cc: %s\n", gap.c_str());
  return gaps.empty() ? 0 : 1;
}
