// Defines the class templates that trials take from libdet.
#include "det/shared_templates.h"

#define DET_DEFINE_TEMPLATE(...) template class __VA_ARGS__;
DET_SHARED_TEMPLATES(DET_DEFINE_TEMPLATE)
#undef DET_DEFINE_TEMPLATE
