// Configurations of notebooks, shells and TensorBoards.
#include <catch2/catch.hpp>

#include "master/api/tasks/interactive_launch.h"

namespace det::api {
namespace {

constexpr const char* kId = "18abd7ae-a529-4a2b-b1f6-156eb1115dee";

Json parsed(const char* text) {
  auto value = parse_json(text);
  REQUIRE(value);
  return std::move(*value);
}

InteractiveConfig made(const char* kind, const char* config) {
  auto result = interactive_config(kind, parsed(config), kId, 15000, "secret");
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

TEST_CASE("a shell waits, and keeps the settings of its user") {
  const auto shell =
      made("SHELL", R"({"resources": {"slots": 2}, "environment": {"proxy_ports": [{"proxy_port": 1}]}})");
  CHECK(shell.command.at("entrypoint") == Json({"sleep", "infinity"}));
  CHECK(shell.command.at("resources").at("slots") == 2);
  CHECK(shell.command.at("environment").at("proxy_ports").size() == 1);
  // A template may have one.
  CHECK_FALSE(shell.command.contains("description"));
  CHECK(shell.task.kind == "SHELL");
  CHECK(shell.task.idle_timeout == 0);
}

TEST_CASE("a notebook gets a port, the path of its pages and a token, in every form of variables") {
  for (const char* config :
       {"{}", R"({"environment": null})", R"({"environment": {"environment_variables": ["A=1"]}})",
        R"({"environment": {"environment_variables": {"cpu": ["A=1"]}}})"}) {
    const auto notebook = made("NOTEBOOK", config);
    const Json& words = notebook.command.at("entrypoint");
    CHECK(words.at(words.size() - 2) == "15000");
    CHECK(words.back() == std::string("/proxy/") + kId + "/");
    const Json& environment = notebook.command.at("environment");
    CHECK(environment.at("proxy_ports").at(0).at("proxy_port") == 15000);
    const std::string variables = environment.at("environment_variables").dump();
    CHECK(variables.find("\"JUPYTER_TOKEN=secret\"") != std::string::npos);
    CHECK(words.dump().find("secret") == std::string::npos);
  }
}

TEST_CASE("a TensorBoard takes no slots, ends when idle and passes its arguments on") {
  const auto board = made("TENSORBOARD", R"({"tensorboard_args": ["--reload_interval=5"]})");
  CHECK(board.command.at("resources").at("slots") == 0);
  CHECK(board.command.at("entrypoint").back() == "--reload_interval=5");
  CHECK(board.task.idle_timeout == 300);
  CHECK(made("TENSORBOARD", R"({"resources": {"slots": 1}})").command.at("resources").at("slots") == 1);
}

TEST_CASE("an idle timeout is a number of seconds or a duration") {
  CHECK(made("NOTEBOOK", R"({"idle_timeout": "30m"})").task.idle_timeout == 1800);
  CHECK(made("NOTEBOOK", R"({"idle_timeout": 90.0, "notebook_idle_type": "activity"})").task.idle_timeout ==
        90);
  CHECK(made("TENSORBOARD", R"({"idle_timeout": 0})").task.idle_timeout == 0);
  CHECK_FALSE(made("NOTEBOOK", R"({"idle_timeout": "30m"})").command.contains("idle_timeout"));
}

TEST_CASE("settings that the cluster chooses and unknown values are refused by their name") {
  for (const auto& [config, name] :
       {std::pair{R"({"entrypoint": ["rm"]})", "entrypoint"},
        {R"({"environment": {"proxy_ports": [{"proxy_port": 1}]}})", "environment.proxy_ports"},
        {R"({"idle_timeout": "soon"})", "idle_timeout"},
        {R"({"idle_timeout": -1})", "idle_timeout"},
        {R"({"idle_timeout": 1e300})", "idle_timeout"},
        {R"({"notebook_idle_type": "kernels_or_terminals"})", "notebook_idle_type"},
        {"[]", "config"}}) {
    INFO(config);
    const auto refused = interactive_config("NOTEBOOK", parsed(config), kId, 15000, "secret");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kInvalidArgument);
    CHECK(refused.error().message.starts_with(std::string(name) + ": "));
  }
  CHECK_FALSE(interactive_config("TENSORBOARD", parsed(R"({"tensorboard_args": "--x"})"), kId, 1, ""));
}

TEST_CASE("ports of tasks are outside of the ranges of the kernel and of gangs") {
  for (int i = 0; i < 1000; ++i) {
    const int port = random_task_port();
    CHECK(port >= 12'000);
    CHECK(port < 24'000);
  }
}

}  // namespace
}  // namespace det::api
