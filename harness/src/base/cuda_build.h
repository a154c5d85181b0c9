// Whether this library is compiled against a LibTorch for CUDA.
#pragma once

// CPU packages of LibTorch contain the CUDA headers, too, but not the configuration that a CUDA build writes.
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#define DET_HAS_CUDA 1
#else
#define DET_HAS_CUDA 0
#endif
