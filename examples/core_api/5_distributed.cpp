// Stage 5: several processes, each with a shard of the points. All ranks call the collectives in the same
// order; only the chief reports and saves.
#include <det/core.h>

#include "cubic.h"

/// Sums the losses and gradients of all ranks. The order of ranks is fixed, so all ranks get the same bits.
Slope slope_of_all(det::DistributedContext& ranks, const Cubic& cubic) {
  const Slope own = slope_of(cubic, ranks.rank(), ranks.size());
  Slope sum;
  for (const det::Json& share : ranks.allgather({{"loss", own.loss}, {"by_c", own.by_c}})) {
    sum.loss += share.at("loss").get<double>();
    for (std::size_t i = 0; i < 4; ++i) sum.by_c[i] += share.at("by_c")[i].get<double>();
  }
  return sum;
}

int main() {
  det::CoreContext core = det::init_core({.config_file = "5_distributed.yaml"});
  det::DistributedContext& ranks = core.distributed();
  const double learning_rate = core.info().hparams.at("learning_rate").get<double>();
  const int batches = core.info().hparams.at("batches").get<int>();

  Cubic cubic;
  int done = 0;
  if (const std::string& uuid = core.info().latest_checkpoint; !uuid.empty()) {
    core.checkpoint().restore_path(uuid, [&](const std::string& directory) { cubic = load(directory); });
    done = core.checkpoint().get_metadata(uuid).at("steps_completed").get<int>();
  }
  for (int batch = done + 1; batch <= batches; ++batch) {
    const Slope slope = slope_of_all(ranks, cubic);
    descend(cubic, slope, learning_rate);
    if (batch % 10 == 0) {  // no-ops on all ranks but the chief
      core.train().report_training_metrics(batch, {{"loss", slope.loss}});
      core.train().report_progress(double(batch) / batches);
    }
    const bool leave = core.preempt().should_preempt();  // the same answer on every rank
    if (batch % 100 == 0)
      core.train().report_validation_metrics(batch, {{"validation_loss", slope_of(cubic).loss}});
    if ((batch % 100 == 0 || leave) && ranks.is_chief()) {
      core.checkpoint().store_path({{"steps_completed", batch}},
                                   [&](const std::string& directory) { save(cubic, directory); });
    }
    if (leave) return 0;
  }
}
