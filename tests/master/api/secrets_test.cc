#include "master/api/submit/secrets.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/yaml/yaml.h"

namespace det::api {
namespace {

constexpr const char* kMaskedConfig = R"(# a comment
name: x
environment:
  environment_variables:
    - PLAIN=shown
    - AWS_SECRET_ACCESS_KEY=canary-1
    - wandb_api_key=canary-2
  registry_auth: {username: me, password: canary-3}
checkpoint_storage: {type: s3, bucket: b, access_key: canary-4, secret_key: canary-5}
data:
  url: shown-too
  secrets: {db: canary-6, deep: {list: [canary-7]}}
)";

TEST_CASE("secrets are masked at every depth, and other values are not") {
  const std::string shown = masked_yaml(kMaskedConfig);
  INFO(shown);
  CHECK(shown.find("canary") == std::string::npos);
  for (const char* kept : {"PLAIN=shown", "AWS_SECRET_ACCESS_KEY=****", "wandb_api_key=****", "username: me",
                           "bucket: b", "shown-too"})
    CHECK(shown.find(kept) != std::string::npos);
  const auto json = parse_yaml(kMaskedConfig, "");
  REQUIRE(json);
  CHECK(masked_json(to_json(*json).dump()).find("canary") == std::string::npos);
  CHECK(masked_policies("constraints: {}\ninvariant_config:\n  data: {secrets: {a: canary-8}}\n")
            .find("canary") == std::string::npos);
}

TEST_CASE("variables for each kind of device, and as a map, are masked") {
  Json config = Json::parse(R"({"environment": {"environment_variables":
      {"cpu": ["MY_TOKEN=canary", "A=b"], "cuda": {"DB_PASSWORD": "canary", "C": "d"}}}})");
  CHECK(mask_secrets(config));
  CHECK(config.dump() == R"({"environment":{"environment_variables":{"cpu":["MY_TOKEN=****","A=b"],)"
                         R"("cuda":{"DB_PASSWORD":"****","C":"d"}}}})");
}

TEST_CASE("a text without secrets stays as written") {
  const std::string text = "# mine\nname:   x\nenvironment: {environment_variables: [TOKEN=, A=b]}\n";
  CHECK(masked_yaml(text) == text);
  CHECK(masked_yaml("no: [yaml") == "no: [yaml");
  CHECK(masked_json("{}") == "{}");
}

}  // namespace
TEST_CASE("the master's settings are shown without the secrets of their defaults") {
  Json config = {{"task_container_defaults",
                  {{"environment",
                    {{"registry_auth", {{"username", "u"}, {"password", "canary-9"}}},
                     {"environment_variables", {"API_TOKEN=canary-10", "PLAIN=yes"}}}}}},
                 {"resource_pools",
                  {{{"pool_name", "gpu"},
                    {"task_container_defaults",
                     {{"environment", {{"environment_variables", {"API_TOKEN=canary-12"}}}}}}}}},
                 {"checkpoint_storage", {{"type", "s3"}, {"bucket", "b"}, {"secret_key", "canary-11"}}},
                 {"data_dir", "/data"}};
  mask_master_config(config);
  CHECK(dump_json(config).find("canary") == std::string::npos);
  CHECK(dump_json(config).find("PLAIN=yes") != std::string::npos);
  CHECK(config["checkpoint_storage"]["bucket"] == "b");
  CHECK(config["data_dir"] == "/data");
  Json bare = {{"task_container_defaults", nullptr}, {"checkpoint_storage", {{"type", "shared_fs"}}}};
  const Json before = bare;
  mask_master_config(bare);
  CHECK(bare == before);
}

}  // namespace det::api
