// The umbrella: everything a trial author needs, with LibTorch. The other headers take only the parts they use, because
// torch/torch.h costs fifteen seconds a source.
#pragma once

#include <torch/torch.h>

#include <nlohmann/json.hpp>

#include "det/checkpoint.h"
#include "det/context.h"
#include "det/data.h"
#include "det/metrics.h"
#include "det/trainer.h"
#include "det/trial.h"
