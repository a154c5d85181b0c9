// Owns DET_EVERY_MACHINE: a function compiled for several instruction sets, of which the machine's best is
// taken when the library is loaded; without fused multiply-add, which would round differently.
#pragma once

#if defined(__x86_64__) && !defined(__clang__)
#define DET_EVERY_MACHINE \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fp-contract=off")))
#else
#define DET_EVERY_MACHINE
#endif
