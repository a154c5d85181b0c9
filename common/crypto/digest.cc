#include "common/crypto/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>

#include <cerrno>
#include <vector>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/base/secret.h"

namespace det {

/// The algorithm, fetched once: EVP_sha256() is fetched again for each digest, which takes longer than the
/// digest of a token.
static const EVP_MD* sha256() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return fetched;
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context, sha256(), nullptr);
}
// Defined here, where State is complete.
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

std::string Sha256::hex() {
  std::string digest(32, '\0');
  EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return to_hex(digest);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(path);
  Sha256 digest;
  std::vector<char> buffer(256 * 1024);
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got == 0) return digest.hex();
    // EINTR retries the read.
    if (got < 0 && errno != EINTR) return fail_errno(path);
    if (got > 0) digest.update({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace det
