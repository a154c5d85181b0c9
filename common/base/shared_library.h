// Optional libraries, loaded with dlopen at run time.
#pragma once

#include <string>

#include "common/base/result.h"

namespace det {

/// A loaded library. It is never unloaded, so its functions stay valid until the process ends.
class SharedLibrary {
 public:
  /// Symbol resolution inside the library.
  enum class Symbols {
    kAsLoaded,  ///< the process's symbols take precedence (default of dlopen)
    kOwnFirst,  ///< RTLD_DEEPBIND: for a library that bundles another version of one in use
  };
  /// Loads a library; `name` is the argument of dlopen. Errors: kNotFound with the loader's message.
  static Result<SharedLibrary> open(const std::string& name, Symbols symbols = Symbols::kAsLoaded);

  /// Sets `function` to the symbol `name`; null if it is missing. The caller is responsible for the type.
  /// Chainable.
  template <typename Function>
  SharedLibrary& find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(address(name));
    return *this;
  }
  /// Errors: kNotFound listing every symbol that find() did not resolve.
  Status complete() const;

 private:
  SharedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* address(const char* name);

  std::string name_, missing_;
  void* handle_;
};

}  // namespace det
