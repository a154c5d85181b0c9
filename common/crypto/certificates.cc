#include "common/crypto/certificates.h"

#include <arpa/inet.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "common/crypto/openssl.h"

namespace det::openssl {

tl::unexpected<Error> failed(const std::string& what) {
  char text[160] = "unknown reason";
  if (const unsigned long code = ERR_peek_last_error(); code != 0)
    ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return fail(Code::kInternal, what + ": " + text);
}

Bio reader(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

Certificate read_next(BIO* pem) {
  Certificate certificate(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> certificate_text(X509* certificate) {
  const Bio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(out.get(), certificate) != 1) return failed("the certificate cannot be written");
  return text_of(out.get());
}

}  // namespace det::openssl

namespace det {
namespace {

using namespace openssl;
using Key = std::unique_ptr<EVP_PKEY, ReleaseWith<EVP_PKEY_free>>;
using Request = std::unique_ptr<X509_REQ, ReleaseWith<X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, ReleaseWith<X509_EXTENSION_free>>;

constexpr int kMaxName = 64;  // maximum of a common name (RFC 5280, ub-common-name)
constexpr int kSerialBits = 127;
constexpr int kMinBits = 2048;                          // minimum of an RSA key in a request
constexpr Duration kClockSkew = std::chrono::hours(1);  // certificates are valid from now minus this

Result<Key> read_key(const std::string& pem) {
  Key key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
  if (!key) return failed("the private key cannot be read");
  return key;
}

Result<Certificate> read_pem(std::string_view pem) {
  Certificate certificate = read_next(reader(pem).get());
  if (!certificate) return fail(Code::kInvalidArgument, "this is no certificate in PEM form");
  return certificate;
}

Result<std::string> key_text(EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("the private key cannot be written");
  return text_of(out.get());
}

Result<Request> read_request(const std::string& pem) {
  Request request(PEM_read_bio_X509_REQ(reader(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!request) return fail(Code::kInvalidArgument, "this is no certificate request in PEM form");
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  // The signature proves that the sender holds the private key.
  const bool good = key && X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  if (!good) return fail(Code::kInvalidArgument, "the request is not signed with its own key");
  const int kind = EVP_PKEY_base_id(key);
  const bool strong = kind == EVP_PKEY_EC || kind == EVP_PKEY_ED25519 ||
                      (kind == EVP_PKEY_RSA && EVP_PKEY_bits(key) >= kMinBits);
  if (!strong)
    return fail(Code::kInvalidArgument, "the request's key must be EC, Ed25519 or RSA of 2048 bits");
  return request;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_name(X509_NAME* name, const std::string& text) {
  const std::string cut = text.substr(0, kMaxName);
  return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>("Determinant"), -1, -1, 0) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(cut.data()),
                                    static_cast<int>(cut.size()), -1, 0) == 1;
}

bool set_serial(X509* certificate) {
  // A random serial needs no counter on disk. RFC 5280 requires a positive number of at most 20 octets.
  const std::unique_ptr<BIGNUM, ReleaseWith<BN_free>> number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_times(X509* certificate, Duration lifetime) {
  const auto seconds = [](Duration d) { return std::chrono::duration_cast<std::chrono::seconds>(d).count(); };
  // The start lies in the past, so that a peer with a slow clock accepts the certificate.
  std::time_t now = static_cast<std::time_t>(wall_now().micros / 1'000'000);
  return X509_time_adj_ex(X509_getm_notBefore(certificate), 0, -seconds(kClockSkew), &now) != nullptr &&
         X509_time_adj_ex(X509_getm_notAfter(certificate), 0, seconds(lifetime), &now) != nullptr;
}

/// Content of a certificate to be made.
struct Wish {
  std::string name;
  Duration lifetime;
  /// X.509 extensions in OpenSSL's text syntax; "" for none.
  std::string constraints, usage, extended, names;
};

/// Builds and signs a certificate. `issuer` null makes it self-signed.
Result<Certificate> make(const Wish& wish, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  Certificate certificate(X509_new());
  X509* const made = certificate.get();
  // The key identifier extensions are derived from the public key, so that is set before them.
  const bool built =
      made && X509_set_version(made, X509_VERSION_3) == 1 && set_serial(made) &&
      set_times(made, wish.lifetime) && set_name(X509_get_subject_name(made), wish.name) &&
      X509_set_pubkey(made, key) == 1 &&
      X509_set_issuer_name(made, X509_get_subject_name(issuer ? issuer : made)) == 1 &&
      add_extension(made, issuer ? issuer : made, NID_basic_constraints, wish.constraints) &&
      add_extension(made, issuer ? issuer : made, NID_key_usage, wish.usage) &&
      add_extension(made, issuer ? issuer : made, NID_subject_key_identifier, "hash") &&
      add_extension(made, issuer ? issuer : made, NID_authority_key_identifier, "keyid") &&
      (wish.extended.empty() ||
       add_extension(made, issuer ? issuer : made, NID_ext_key_usage, wish.extended)) &&
      (wish.names.empty() || add_extension(made, issuer ? issuer : made, NID_subject_alt_name, wish.names)) &&
      X509_sign(made, issuer_key, EVP_sha256()) > 0;
  if (!built) return failed("the certificate for " + wish.name + " cannot be made");
  return certificate;
}

bool is_address(const std::string& text) {
  unsigned char bytes[16];
  return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

/// Accepts host name characters only: a comma or newline would inject further entries into OpenSSL's text
/// syntax.
bool is_host(const std::string& text) {
  return !text.empty() && text.size() <= 253 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*") ==
             std::string::npos;
}

}  // namespace

Result<std::string> make_private_key() {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return failed("no private key");
  return key_text(key.get());
}

Result<Identity> make_authority(const std::string& name, Duration lifetime) {
  Identity made;
  TRY_ASSIGN(made.key, make_private_key());
  TRY_ASSIGN(const Key key, read_key(made.key));
  // pathlen:0: the authority cannot create intermediate authorities.
  const Wish wish{name, lifetime, "critical,CA:TRUE,pathlen:0", "critical,keyCertSign,cRLSign", "", ""};
  TRY_ASSIGN(const Certificate certificate, make(wish, key.get(), nullptr, key.get()));
  TRY_ASSIGN(made.certificate, certificate_text(certificate.get()));
  return made;
}

Result<Identity> issue_server(const Identity& authority, const std::vector<std::string>& names,
                              Duration lifetime) {
  if (names.empty()) return fail(Code::kInvalidArgument, "a server's certificate needs a name");
  std::vector<std::string> alternatives;
  for (const std::string& name : names) {
    if (!is_address(name) && !is_host(name))
      return fail(Code::kInvalidArgument, "\"" + name + "\" is neither a host name nor a numeric address");
    alternatives.push_back((is_address(name) ? "IP:" : "DNS:") + name);
  }
  TRY_ASSIGN(const Certificate issuer, read_pem(authority.certificate));
  TRY_ASSIGN(const Key issuer_key, read_key(authority.key));
  Identity made;
  TRY_ASSIGN(made.key, make_private_key());
  TRY_ASSIGN(const Key key, read_key(made.key));
  const Wish wish{names.front(),       lifetime,
                  "critical,CA:FALSE", "critical,digitalSignature",
                  "serverAuth",        join(alternatives, ",")};
  TRY_ASSIGN(const Certificate certificate, make(wish, key.get(), issuer.get(), issuer_key.get()));
  TRY_ASSIGN(made.certificate, certificate_text(certificate.get()));
  return made;
}

Result<std::string> make_request(const std::string& key_pem, const std::string& name) {
  TRY_ASSIGN(const Key key, read_key(key_pem));
  const Request request(X509_REQ_new());
  const bool built = request && set_name(X509_REQ_get_subject_name(request.get()), name) &&
                     X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
                     X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0;
  const Bio out(BIO_new(BIO_s_mem()));
  if (!built || PEM_write_bio_X509_REQ(out.get(), request.get()) != 1)
    return failed("the certificate request cannot be made");
  return text_of(out.get());
}

Result<std::string> sign_client(const Identity& authority, const std::string& request_pem,
                                const std::string& name, Duration lifetime) {
  TRY_ASSIGN(const Request request, read_request(request_pem));
  TRY_ASSIGN(const Certificate issuer, read_pem(authority.certificate));
  TRY_ASSIGN(const Key issuer_key, read_key(authority.key));
  const Wish wish{name, lifetime, "critical,CA:FALSE", "critical,digitalSignature", "clientAuth", ""};
  TRY_ASSIGN(const Certificate certificate,
             make(wish, X509_REQ_get0_pubkey(request.get()), issuer.get(), issuer_key.get()));
  return certificate_text(certificate.get());
}

Result<std::string> request_key_digest(const std::string& request_pem) {
  TRY_ASSIGN(const Request request, read_request(request_pem));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(X509_REQ_get0_pubkey(request.get()), &der);
  if (size <= 0) return failed("the request's key cannot be read");
  const std::string digest = sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return digest;
}

Result<CertificateFacts> read_certificate(std::string_view pem) {
  TRY_ASSIGN(const Certificate certificate, read_pem(pem));
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate.get(), &der);
  if (size <= 0) return failed("the certificate cannot be read");
  CertificateFacts facts;
  facts.fingerprint = sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name);
  facts.subject = name;
  std::tm time{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time);
  facts.expires = WallTime{static_cast<std::int64_t>(::timegm(&time)) * 1'000'000};
  return facts;
}

Result<std::vector<std::string>> split_chain(std::string_view pem) {
  const Bio bio = reader(pem);
  std::vector<std::string> all;
  while (const Certificate certificate = read_next(bio.get())) {
    TRY_ASSIGN(std::string text, certificate_text(certificate.get()));
    all.push_back(std::move(text));
  }
  if (all.empty()) return fail(Code::kInvalidArgument, "there is no certificate in PEM form");
  return all;
}

std::string shown_fingerprint(std::string_view fingerprint) {
  std::string shown;
  for (std::size_t i = 0; i + 1 < fingerprint.size(); i += 2) {
    if (i > 0) shown += ':';
    for (const char c : fingerprint.substr(i, 2))
      shown += c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return shown;
}

}  // namespace det
