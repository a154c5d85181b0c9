// Umbrella header with everything that a trial needs. The library's other headers include only the parts of
// LibTorch they use, because torch/torch.h adds about 15 s to the compilation of a source file.
#pragma once

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "det/amp.h"
#include "det/callback.h"
#include "det/checkpoint.h"
#include "det/context.h"
#include "det/data.h"
#include "det/datasets.h"
#include "det/distributed.h"
#include "det/lr_scheduler.h"
#include "det/lr_scheduler_composed.h"
#include "det/media.h"
#include "det/metrics.h"
#include "det/models.h"
#include "det/optim.h"
#include "det/profiler.h"
#include "det/samplers.h"
#include "det/tensorboard.h"
#include "det/trainer.h"
#include "det/transforms.h"
#include "det/trial.h"
