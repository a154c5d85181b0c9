// Owns libraries that are looked for while the program runs: those that a machine need not have, or that few
// runs need.
#pragma once

#include <string>

#include "base/result.h"

namespace det {

/// Stays loaded until the process ends, so what was found in it may be called as long.
class SharedLibrary {
 public:
  enum class Symbols {
    kAsLoaded,  ///< the process's come before its own
    kOwnFirst,  ///< for a library that brings another release of what the process has
  };
  /// `name` as dlopen takes it. kNotFound with the loader's words.
  static Result<SharedLibrary> open(const std::string& name, Symbols symbols = Symbols::kAsLoaded);

  /// function = the library's function of this name, whose type it is said to be; null when there is none.
  template <typename Function>
  SharedLibrary& find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(address(name));
    return *this;
  }
  /// kNotFound that names what find() did not find.
  Status complete() const;

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* address(const char* name);

  std::string name_, missing_;
  void* handle_;
};

}  // namespace det
