// Stage 4: reads its hyperparameters from the search, which stops trials with poor validation metrics early.
#include <det/core.h>

#include "cubic.h"

void store(det::CoreContext& core, const Cubic& cubic, int batch) {
  core.checkpoint().store_path({{"steps_completed", batch}},
                               [&](const std::string& directory) { save(cubic, directory); });
}

int main() {
  det::CoreContext core = det::init_core();
  const double learning_rate = core.info().hparams.value("learning_rate", 0.3);  // default without a cluster
  const int batches = core.info().hparams.value("batches", 500);

  Cubic cubic;
  int done = 0;
  if (const std::string& uuid = core.info().latest_checkpoint; !uuid.empty()) {
    core.checkpoint().restore_path(uuid, [&](const std::string& directory) { cubic = load(directory); });
    done = core.checkpoint().get_metadata(uuid).at("steps_completed").get<int>();
  }
  for (int batch = done + 1; batch <= batches; ++batch) {
    const Slope slope = slope_of(cubic);
    if (!(slope.loss < 100)) {  // diverged (or NaN): the learning rate is too large
      core.train().report_early_exit(det::ExitedReason::kInvalidHP);
      return 0;
    }
    descend(cubic, slope, learning_rate);
    if (batch % 10 == 0) {
      core.train().report_training_metrics(batch, {{"loss", slope.loss}});
      core.train().report_progress(double(batch) / batches);
    }
    const bool leave = core.preempt().should_preempt();  // paused, or stopped early by the search
    if (batch % 25 == 0)
      core.train().report_validation_metrics(batch, {{"validation_loss", slope_of(cubic).loss}});
    if (batch == batches || leave) store(core, cubic, batch);
    if (leave) return 0;
  }
}
