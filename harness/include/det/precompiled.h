// Contents of the precompiled header with which Clang compiles trials; see precompiled in model_build.json.
// Trials include det/det.h.
#pragma once

// Clang before 16 instantiates constexpr members of std::vector<T> as soon as they are named. LibTorch's
// ATen/core/List.h names them for c10::IValue, which is incomplete there. Without constexpr they are
// instantiated when they are used, as before C++20. The other name keeps <bits/stl_algobase.h> from declaring
// a constexpr function of std::vector<bool>.
#if defined(__clang__) && __clang_major__ < 16 && __has_include(<bits/stl_algobase.h>)
#define _Bit_iterator _Bit_iterator_undefined
#include <bits/stl_algobase.h>
#undef _Bit_iterator
#include <memory>
#include <string>
#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#include <vector>
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")
#endif

#include "det/det.h"
#include "det/shared_templates.h"

// Standard headers that many trials include: 0.4 s of each compilation.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

// Defined in libdet.
#define DET_EXTERN_TEMPLATE(...) extern template class __VA_ARGS__;
DET_SHARED_TEMPLATES(DET_EXTERN_TEMPLATE)
#undef DET_EXTERN_TEMPLATE
