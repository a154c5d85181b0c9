// OpenSSL's objects with automatic release, and their PEM texts. Private to common/crypto and its tests.
#pragma once

#include <openssl/bio.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "common/base/release.h"
#include "common/base/result.h"

namespace det::openssl {

using Bio = std::unique_ptr<BIO, ReleaseWith<BIO_free>>;
using Certificate = std::unique_ptr<X509, ReleaseWith<X509_free>>;

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
