// A program that runs outside the cluster and is tracked by it.
#pragma once

#include <det/core.h>

#include <utility>

/// On a cluster its trial; anywhere else an experiment of its own at the master.
inline det::CoreContext begin_anywhere() {
  det::CoreOptions options;
  options.detached = det::DetachedConfig{
      .name = "line by hand", .hparams = {{"learning_rate", 0.2}}, .searcher_metric = "slope_error"};
  return det::init_core(std::move(options));
}
