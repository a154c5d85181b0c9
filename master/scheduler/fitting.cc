#include "master/scheduler/fitting.h"

#include <algorithm>
#include <span>

namespace det::scheduler {
namespace {

using Slots = std::vector<int>;
using Some = std::span<const int>;

/// Splits `free` (ascending ids) into runs of adjacent ids.
std::vector<Some> runs_of(Some free) {
  std::vector<Some> runs;
  for (std::size_t begin = 0, end = 1; begin < free.size(); begin = end++) {
    while (end < free.size() && free[end - 1] + 1 == free[end]) ++end;
    runs.push_back(free.subspan(begin, end - begin));
  }
  return runs;
}

/// Appends `count` of the `free` slots of one link group: the tightest run that is long enough, otherwise the
/// longest runs.
void choose_adjacent(Some free, std::size_t count, Slots& chosen) {
  std::vector<Some> runs = runs_of(free);
  const Some* tightest = nullptr;
  for (const Some& run : runs) {
    if (run.size() >= count && (!tightest || run.size() < tightest->size())) tightest = &run;
  }
  if (tightest) {
    chosen.insert(chosen.end(), tightest->begin(), tightest->begin() + static_cast<std::ptrdiff_t>(count));
    return;
  }
  std::stable_sort(runs.begin(), runs.end(), [](Some a, Some b) { return a.size() > b.size(); });
  for (const Some& run : runs) {
    const Some part = run.first(std::min(run.size(), count));
    chosen.insert(chosen.end(), part.begin(), part.end());
    count -= part.size();
  }
}

/// Partition of a gang over a fixed number of agents: depth-first search over the kinds of agents, largest
/// first, for the least number of slots left over. `pieces` agents are known to suffice and to be the fewest.
class Cut {
 public:
  Cut(const std::vector<std::pair<int, int>>& agents, int pieces) : agents_(agents), pieces_(pieces) {}

  std::vector<int> run(int count) {
    search(0, pieces_, count);
    return std::move(best_);
  }

 private:
  void search(std::size_t kind, int pieces, int need) {
    if (pieces == 0) {
      if (need > 0 || (!best_.empty() && -need >= best_over_)) return;
      best_ = chosen_;
      best_over_ = -need;
      return;
    }
    if (kind == agents_.size() || ++steps_ > kSearchSteps) return;
    // The remaining kinds are no larger: when even the largest cannot cover the need, this branch is dead.
    const auto [free, there] = agents_[kind];
    if (static_cast<long>(free) * pieces < need) return;
    for (int take = std::min(pieces, there); take >= 0; --take) {
      chosen_.insert(chosen_.end(), static_cast<std::size_t>(take), free);
      search(kind + 1, pieces - take, need - take * free);
      chosen_.resize(chosen_.size() - static_cast<std::size_t>(take));
      if (!best_.empty() && best_over_ == 0) return;
    }
  }

  const std::vector<std::pair<int, int>>& agents_;
  int pieces_;
  int steps_ = 0;
  std::vector<int> chosen_, best_;
  int best_over_ = 0;
};

}  // namespace

std::vector<int> choose_slots(const std::vector<Slot>& slots, const std::vector<bool>& free, int count) {
  // Sorted by link group, within a group by id.
  Slots sorted;
  sorted.reserve(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (free[i]) sorted.push_back(static_cast<int>(i));
  }
  const auto link = [&](int slot) { return slots[static_cast<std::size_t>(slot)].link; };
  std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return link(a) < link(b); });
  std::vector<Some> groups;
  for (std::size_t begin = 0, end = 1; begin < sorted.size(); begin = end++) {
    while (end < sorted.size() && link(sorted[end]) == link(sorted[begin])) ++end;
    groups.push_back(Some(sorted).subspan(begin, end - begin));
  }
  // Best fit while one group suffices for the rest, else the largest group: the fewest groups.
  Slots chosen;
  chosen.reserve(static_cast<std::size_t>(count));
  while (chosen.size() < static_cast<std::size_t>(count)) {
    const auto need = static_cast<std::size_t>(count) - chosen.size();
    auto tightest = groups.end(), largest = groups.end();
    for (auto it = groups.begin(); it != groups.end(); ++it) {
      const std::size_t size = it->size();
      if (size >= need && (tightest == groups.end() || size < tightest->size())) tightest = it;
      if (largest == groups.end() || size > largest->size()) largest = it;
    }
    const auto group = tightest != groups.end() ? tightest : largest;
    if (group == groups.end()) break;
    choose_adjacent(*group, std::min(need, group->size()), chosen);
    groups.erase(group);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int> choose_agents(const std::vector<std::pair<int, int>>& agents, int count) {
  // Taking the largest agents first gives the fewest agents. The search then minimizes what is left over.
  int pieces = 0, need = count;
  for (const auto& [free, there] : agents) {
    const int take = std::min(there, (need + free - 1) / free);
    pieces += take;
    need -= take * free;
    if (need <= 0) break;
  }
  if (need > 0 || count <= 0) return {};
  return Cut(agents, pieces).run(count);
}

}  // namespace det::scheduler
