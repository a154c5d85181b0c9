#include "common/client/channel.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "common/base/files.h"
#include "common/base/process.h"

namespace det {
namespace {

constexpr std::int64_t kMaxBytes = 1 << 20;  // size of a PEM file
constexpr unsigned kLookSeconds = 10;        // interval of checks for a renewed certificate

/// TLS without verification of the server ("noverify").
std::shared_ptr<grpc::ChannelCredentials> believe_anybody() {
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace

bool is_tls(std::string_view master) { return master.starts_with("https://"); }

std::string without_scheme(std::string_view master) {
  const std::size_t scheme = master.find("://");
  return std::string(scheme == std::string_view::npos ? master : master.substr(scheme + 3));
}

MasterTrust trust_from_environment(std::string_view master) {
  return {.tls = is_tls(master),
          .cert_file = environment_variable("DET_MASTER_CERT_FILE"),
          .cert_name = environment_variable("DET_MASTER_CERT_NAME")};
}

Result<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const MasterTrust& trust,
                                                                      grpc::ChannelArguments& arguments) {
  if (!trust.tls) return grpc::InsecureChannelCredentials();
  if (trust.cert_file == "noverify") return believe_anybody();
  // Verifies against the configured name when the master is called by another one, such as an IP address.
  if (!trust.cert_name.empty()) arguments.SetSslTargetNameOverride(trust.cert_name);
  std::string anchors;
  if (!trust.cert_file.empty()) {
    TRY_ASSIGN(anchors, read_file(trust.cert_file, kMaxBytes));
  }
  // Without a client certificate the stable API suffices; client certificates that are reloaded need the
  // experimental one.
  if (trust.own_cert.empty()) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = anchors;
    return grpc::SslCredentials(options);
  }
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      trust.own_key, trust.own_cert, trust.cert_file, kLookSeconds));
  if (!trust.cert_file.empty()) options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace det
