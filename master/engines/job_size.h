// Size of a pilot's job: the placeholder {slots} in the settings of a provider.
#pragma once

#include "master/config/pools.h"

namespace det::engines {

/// Replaces {slots} by the slots that work will use on a node: in gres, sbatch_options, agent_arguments and
/// the values of resources. Pure.
ProviderConfig with_slots(ProviderConfig config, int slots);

}  // namespace det::engines
