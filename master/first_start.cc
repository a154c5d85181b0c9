#include "first_start.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "master/api/auth/authorize.h"
#include "master/api/auth/passwords.h"
#include "master/db/accounts/users.h"
#include "master/db/store/at_rest.h"

namespace det {
namespace {

constexpr const char* kName = "admin";
constexpr std::size_t kMinPassword = 8;

Result<std::string> operators_password(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path, 4096));
  const std::string password(trim(text));
  if (password.size() < kMinPassword) {
    return fail(Code::kInvalidArgument, path + ": the password must have at least 8 characters");
  }
  return password;
}

/// Returns the secret of a token "det_j_SECRET.PIN"; "" for other text.
std::string secret_of(std::string_view token) {
  constexpr std::size_t kShortestToken = 32;
  const std::string secret(trim(token.substr(0, token.find('.'))));
  return secret.starts_with("det_j_") && secret.size() >= kShortestToken ? secret : "";
}

}  // namespace

Result<std::string> load_local_join_token(const MasterConfig& config, const std::string& pin) {
  const std::string file = config.data_dir + "/" + kLocalJoinToken;
  std::string text;
  if (path_exists(file)) {
    TRY_ASSIGN(text, read_file(file, 4096));
  }
  std::string secret = secret_of(text);
  if (secret.empty()) secret = "det_j_" + random_token();
  const std::string token = secret + (pin.empty() ? "" : "." + pin);
  if (trim(text) != token) TRY(write_file_atomic(file, token + "\n", 0600));
  return api::token_hash(secret);
}

Status protect_secrets(const MasterConfig& config, db::Pool& pool) {
  // A rotation may have been interrupted: the database has the name of the key that is in use.
  TRY_ASSIGN(const std::string current, db::stored_key(pool));
  TRY(Vault::settle(config.secrets_key_file, current));
  TRY_ASSIGN(Vault vault, Vault::open(config.secrets_key_file));
  db::use_vault(std::make_shared<const Vault>(std::move(vault)));
  return db::seal_stored_secrets(pool);
}

Status create_admin(db::Pool& pool, const MasterConfig& config) {
  auto known = db::find_user(pool, kName);
  if (known) return {};
  if (known.error().code != Code::kNotFound) return tl::unexpected(known.error());
  const bool own = config.admin_password_file.empty();
  const std::string file = own ? config.data_dir + "/admin-password" : config.admin_password_file;
  std::string password;
  if (!own || path_exists(file)) {
    // The generated file exists if an earlier first start crashed before it created the user.
    TRY_ASSIGN(password, operators_password(file));
  } else {
    password = random_token();
    TRY(write_file_atomic(file, password + "\n", 0600));
  }
  TRY_ASSIGN(const std::string form, api::password_form(password, false));
  TRY_ASSIGN(const bool made, db::create_first_admin(pool, kName, api::hash_password(form)));
  if (!made) return {};
  log::info("created the user admin", {{"password_file", file}});
  if (own) {
    // The standard error of a service goes to a journal that others can read, so only a terminal gets the
    // password.
    const std::string shown = ::isatty(STDERR_FILENO) ? password + " (stored in " + file + ")" : "in " + file;
    std::fprintf(stderr, "First start: log in as \"%s\" with the password %s\n", kName, shown.c_str());
  }
  return {};
}

}  // namespace det
