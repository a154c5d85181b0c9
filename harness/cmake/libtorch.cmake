# Finds LibTorch in CMAKE_PREFIX_PATH, the torch Python package or the system, in this order. Defines the
# target det::torch.
if(TARGET det::torch)
  return()
endif()

# LibTorch's targets refer to each other by name. They must be global to be visible from the directories that
# link this library.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
if(CMAKE_PREFIX_PATH)
  find_package(Torch QUIET PATHS ${CMAKE_PREFIX_PATH} NO_DEFAULT_PATH)
endif()
set(DET_SYSTEM_TORCH OFF)
if(NOT Torch_FOUND)
  execute_process(
    COMMAND python3 -c "import torch.utils; print(torch.utils.cmake_prefix_path, end='')"
    OUTPUT_VARIABLE det_python_torch RESULT_VARIABLE det_python_failed ERROR_QUIET)
  if(det_python_failed EQUAL 0)
    find_package(Torch QUIET PATHS ${det_python_torch} NO_DEFAULT_PATH)
  endif()
endif()
if(NOT Torch_FOUND)
  find_package(Torch REQUIRED)
  set(DET_SYSTEM_TORCH ON)
endif()
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL OFF)

# LibTorch as users see it: in `det --version` and in the agent's log. Only a build for CUDA has this header.
set(det_libtorch "LibTorch ${Torch_VERSION}, without CUDA")
foreach(directory ${TORCH_INCLUDE_DIRS} /usr/include)
  if(EXISTS ${directory}/c10/cuda/impl/cuda_cmake_macros.h)
    set(det_libtorch "LibTorch ${Torch_VERSION}, CUDA ${CUDA_VERSION}")
  endif()
endforeach()
set(DET_LIBTORCH "${det_libtorch}" CACHE INTERNAL "LibTorch of this build")
message(STATUS "${DET_LIBTORCH}: ${TORCH_INSTALL_PREFIX}")

add_library(det::torch INTERFACE IMPORTED GLOBAL)
target_link_libraries(det::torch INTERFACE ${TORCH_LIBRARIES})
separate_arguments(det_torch_flags NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(det::torch INTERFACE ${det_torch_flags})
target_include_directories(det::torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
# Debian's LibTorch uses the system's libblas.so.3. The reference BLAS is 8 to 30 times slower than OpenBLAS,
# so OpenBLAS is linked explicitly and comes first in the order of symbol resolution.
if(DET_SYSTEM_TORCH)
  find_library(DET_OPENBLAS NAMES libopenblas.so.0 openblas)
  if(DET_OPENBLAS)
    target_link_libraries(det::torch INTERFACE -Wl,--push-state,--no-as-needed ${DET_OPENBLAS} -Wl,--pop-state)
  else()
    message(WARNING "OpenBLAS not found (libopenblas0-openmp): training on the CPU will be several times slower")
  endif()
endif()
