// DET_EVERY_MACHINE compiles a function for several instruction sets; the loader selects the best one for the
// machine. Fused multiply-add is disabled because it rounds differently: results are the same on all
// machines.
#pragma once

#if defined(__x86_64__) && !defined(__clang__)
#define DET_EVERY_MACHINE \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fp-contract=off")))
#else
#define DET_EVERY_MACHINE
#endif
