// Automatic release of objects of C libraries.
#pragma once

namespace det {

/// `std::unique_ptr<SSL, ReleaseWith<SSL_free>>` releases its object with SSL_free.
template <auto kRelease>
struct ReleaseWith {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};

}  // namespace det
