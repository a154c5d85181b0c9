// OpenSSL's objects with automatic release, and their PEM texts. Private to common/crypto and its tests.
#pragma once

#include <openssl/bio.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det::openssl {

/// `std::unique_ptr<SSL, FreeWith<SSL_free>>` releases its object with SSL_free.
template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;

/// Returns OpenSSL's last error as kInternal and clears its per-thread error queue, so that later calls do
/// not report it.
tl::unexpected<Error> failed(const std::string& what);
/// Returns a reader of `text`, which must outlive it.
Bio reader(std::string_view text);
/// Parses the next certificate of a PEM text; null at its end and for anything else. Clears the error queue.
Certificate read_next(BIO* pem);
/// Returns the bytes that were written to a memory BIO.
std::string text_of(BIO* bio);
/// Returns the PEM text of a certificate.
Result<std::string> certificate_text(X509* certificate);

}  // namespace det::openssl
