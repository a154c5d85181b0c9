#include "master/scheduler/fitting.h"

#include <algorithm>
#include <map>

namespace det::scheduler {
namespace {

using Slots = std::vector<int>;

/// Runs of adjacent ids in `free` (ascending).
std::vector<Slots> runs_of(const Slots& free) {
  std::vector<Slots> runs;
  for (int slot : free) {
    if (runs.empty() || runs.back().back() + 1 != slot) runs.emplace_back();
    runs.back().push_back(slot);
  }
  return runs;
}

Slots choose_adjacent(const Slots& free, int count) {
  std::vector<Slots> runs = runs_of(free);
  const Slots* tightest = nullptr;
  for (const Slots& run : runs) {
    if (static_cast<int>(run.size()) >= count && (!tightest || run.size() < tightest->size()))
      tightest = &run;
  }
  if (tightest) return {tightest->begin(), tightest->begin() + count};
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Slots& a, const Slots& b) { return a.size() > b.size(); });
  Slots chosen;
  for (const Slots& run : runs) {
    const auto take = std::min<std::size_t>(run.size(), static_cast<std::size_t>(count) - chosen.size());
    chosen.insert(chosen.end(), run.begin(), run.begin() + static_cast<std::ptrdiff_t>(take));
  }
  return chosen;
}

/// Depth first over kinds of agents, largest first.
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
  std::map<int, Slots> groups;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (free[i]) groups[slots[i].link].push_back(static_cast<int>(i));
  }
  Slots chosen;
  while (static_cast<int>(chosen.size()) < count) {
    const auto need = static_cast<std::size_t>(count) - chosen.size();
    auto tightest = groups.end(), largest = groups.end();
    for (auto it = groups.begin(); it != groups.end(); ++it) {
      const std::size_t size = it->second.size();
      if (size >= need && (tightest == groups.end() || size < tightest->second.size())) tightest = it;
      if (largest == groups.end() || size > largest->second.size()) largest = it;
    }
    const auto group = tightest != groups.end() ? tightest : largest;
    if (group == groups.end()) break;
    const auto take = std::min(need, group->second.size());
    const Slots part = choose_adjacent(group->second, static_cast<int>(take));
    chosen.insert(chosen.end(), part.begin(), part.end());
    groups.erase(group);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int> choose_agents(const std::vector<std::pair<int, int>>& agents, int count) {
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
