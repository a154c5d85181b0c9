#include "common/crypto/ssh_key.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <array>
#include <string_view>

#include "common/base/secret.h"
#include "common/crypto/openssl.h"

namespace det {
namespace {

using SshKey = std::unique_ptr<EVP_PKEY, ReleaseWith<EVP_PKEY_free>>;

constexpr std::string_view kKeyType = "ecdsa-sha2-nistp256", kCurve = "nistp256";
/// Bytes of an uncompressed point of P-256.
constexpr std::size_t kPointBytes = 65;

/// Adds a string of RFC 4251: its length in 4 bytes, then its bytes.
void add_string(std::string& blob, std::string_view bytes) {
  for (const int shift : {24, 16, 8, 0}) blob.push_back(static_cast<char>(bytes.size() >> shift & 0xff));
  blob.append(bytes);
}

}  // namespace

Result<std::string> make_ssh_key() {
  const SshKey key(EVP_EC_gen("P-256"));
  const openssl::Bio out(BIO_new(BIO_s_mem()));
  if (!key || !out ||
      PEM_write_bio_PrivateKey_traditional(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl::failed("no key for SSH");
  return openssl::text_of(out.get());
}

Result<std::string> ssh_public_key(const std::string& private_key) {
  const openssl::Bio in = openssl::reader(private_key);
  const SshKey key(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  std::array<unsigned char, kPointBytes> point{};
  std::size_t size = 0;
  if (!key ||
      EVP_PKEY_get_octet_string_param(key.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(),
                                      &size) != 1 ||
      size != point.size())
    return openssl::failed("the key for SSH is malformed");
  std::string blob;
  add_string(blob, kKeyType);
  add_string(blob, kCurve);
  add_string(blob, {reinterpret_cast<const char*>(point.data()), size});
  std::string line(kKeyType);
  line += ' ';
  return line += to_base64(blob);
}

}  // namespace det
