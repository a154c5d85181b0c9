// Deleter for std::unique_ptr that calls a C function.
#pragma once

namespace det {

/// `std::unique_ptr<SSL, FreeWith<SSL_free>>` releases its object with SSL_free.
template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace det
