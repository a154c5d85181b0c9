// What det writes around model_def.cpp when it builds `entrypoint: model_def:MNistTrial`.
#include "model_def.cpp"
DET_TRIAL(MNistTrial)
