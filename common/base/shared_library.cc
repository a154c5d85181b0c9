#include "common/base/shared_library.h"

#include <dlfcn.h>

namespace det {

Result<SharedLibrary> SharedLibrary::open(const std::string& name, Symbols symbols) {
  // RTLD_DEEPBIND: the library's references bind to its own dependencies first.
  const int order = symbols == Symbols::kOwnFirst ? RTLD_DEEPBIND : 0;
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | order);
  if (handle == nullptr) return fail(Code::kNotFound, ::dlerror());
  return SharedLibrary(name, handle);
}

void* SharedLibrary::address(const char* name) {
  void* found = ::dlsym(handle_, name);
  // Missing symbols are collected and reported together by complete().
  if (found == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  return found;
}

Status SharedLibrary::complete() const {
  if (missing_.empty()) return {};
  return fail(Code::kNotFound, name_ + " has no " + missing_);
}

}  // namespace det
