// Several processes of one trial over the Core API. Regions of the guide's chapter on ranks.
#pragma once

#include <det/core.h>

#include <fstream>
#include <string>
#include <vector>

/// The mean of what the ranks have.
inline double mean_over_ranks(det::CoreContext& core, double value) {
  double sum = 0;
  for (const det::Json& of_rank : core.distributed().allgather(value)) sum += of_rank.get<double>();
  return sum / core.distributed().size();
}

/// One checkpoint of which every rank writes its part.
inline std::string store_shards(det::CoreContext& core, int steps_completed, const std::string& mine) {
  const auto stored = core.checkpoint().store_path(
      {{"steps_completed", steps_completed}},
      [&](const std::string& directory) {
        std::ofstream(directory + "/shard-" + std::to_string(core.distributed().rank())) << mine;
      },
      /*shard=*/true);
  return stored.uuid;
}

/// Reports media of a step; the panel "Media" shows them. A repeated step replaces its entries.
inline void report_residuals(det::CoreContext& core, int step, const std::vector<double>& residuals) {
  core.train().report_histogram(step, "residuals", residuals);
  core.train().report_text(step, "note", "largest: " + std::to_string(residuals.back()));
}
