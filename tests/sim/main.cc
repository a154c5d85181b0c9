// Command line of the simulator: one seed with its trace, or a range of seeds up to the first failure.
//   det_sim --seed 7 --trace      det_sim --seeds 1..100000
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/sim/world.h"

namespace {

int usage() {
  std::fprintf(stderr, "usage: det_sim --seed N [--trace] | --seeds A..B\n");
  return 2;
}

bool read_number(std::string_view text, std::uint64_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 0, last = 0;
  bool trace = false, given = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--trace") {
      trace = true;
    } else if (flag == "--seed" && read_number(value, first)) {
      last = first;
      given = true;
      ++i;
    } else if (const auto dots = value.find(".."); flag == "--seeds" && dots != value.npos &&
                                                   read_number(value.substr(0, dots), first) &&
                                                   read_number(value.substr(dots + 2), last)) {
      given = true;
      ++i;
    } else {
      return usage();
    }
  }
  if (!given) return usage();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const auto plan = det::sim::draw_plan(seed);
    const auto outcome = det::sim::simulate(plan, trace);
    if (outcome.failure.empty() && first != last) continue;
    std::printf("%s%llu events, %.0f simulated seconds, trace %016llx\n", det::sim::describe(plan).c_str(),
                static_cast<unsigned long long>(outcome.events), outcome.seconds,
                static_cast<unsigned long long>(outcome.trace_hash));
    if (outcome.failure.empty()) continue;
    std::printf("BROKEN: %s\nagain: det_sim --seed %llu --trace\n", outcome.failure.c_str(),
                static_cast<unsigned long long>(seed));
    return 1;
  }
  std::printf("%llu seeds passed\n", static_cast<unsigned long long>(last - first + 1));
  return 0;
}
