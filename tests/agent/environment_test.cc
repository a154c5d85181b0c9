#include "agent/environment.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>

#include "agent/ports.h"

using namespace det;
using namespace det::agent;

namespace {

v1::StartAllocation order() {
  v1::StartAllocation order;
  order.set_allocation_id("1.a.2");
  order.set_task_id("1.a");
  order.set_experiment_id(1);
  order.set_trial_id(5);
  order.set_run(2);
  order.set_trial_seed(77);
  order.set_hparams(R"({"lr":0.1})");
  order.set_experiment_config("{}");
  order.set_token("secret");
  order.add_slots(1);
  return order;
}

std::map<std::string, std::string> variables(const v1::StartAllocation& order, const Surroundings& around,
                                             std::vector<std::string>* refused = nullptr) {
  std::vector<std::string> bad;
  std::map<std::string, std::string> map;
  for (const std::string& line : task_environment(order, around, bad)) {
    map[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  }
  if (refused != nullptr) *refused = bad;
  return map;
}

Surroundings around(const std::string& type, int slots) {
  Surroundings around{.master = "h:1",
                      .cluster_id = "c",
                      .agent_id = "a",
                      .cpus = 8,
                      .workdir = "/w",
                      .run_dir = "/r",
                      .programs = "/p/bin",
                      .home = "/r/home"};
  for (int i = 0; i < slots; ++i) around.devices.push_back({type, "", "GPU-" + std::to_string(i)});
  return around;
}

}  // namespace

TEST_CASE("the environment of a task identifies its trial, run and slots", "[environment]") {
  auto found = variables(order(), around("CPU", 2));
  const std::map<std::string, std::string> expected{{"DET_MASTER", "http://h:1"},
                                                    {"DET_CLUSTER_ID", "c"},
                                                    {"DET_AGENT_ID", "a"},
                                                    {"DET_SLOT_IDS", "[1]"},
                                                    {"DET_TASK_ID", "1.a"},
                                                    {"DET_ALLOCATION_ID", "1.a.2"},
                                                    {"DET_RESOURCES_ID", "1.a.2.0"},
                                                    {"DET_RESOURCES_TYPE", "docker-container"},
                                                    {"DET_USER", "trial-5"},
                                                    {"DET_CONTAINER_ID", "1.a.2"},
                                                    {"DET_SESSION_TOKEN", "secret"},
                                                    {"DET_TASK_TYPE", "TRIAL"},
                                                    {"DET_EXPERIMENT_ID", "1"},
                                                    {"DET_TRIAL_ID", "5"},
                                                    {"DET_TRIAL_RUN_ID", "2"},
                                                    {"DET_TRIAL_SEED", "77"},
                                                    {"DET_EXPERIMENT_CONFIG", "{}"},
                                                    {"DET_HPARAMS", R"({"lr":0.1})"},
                                                    {"DET_STEPS_COMPLETED", "0"},
                                                    {"DET_WORKDIR", "/w"},
                                                    {"DET_RUN_DIR", "/r"}};
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(found[name] == value);
  }
  CHECK_FALSE(found.contains("DET_LATEST_CHECKPOINT"));
  CHECK_FALSE(found.contains("DET_USER_TOKEN"));
  auto resumed = order();
  resumed.set_user_token("task-1.a.2.secret");
  resumed.set_latest_checkpoint("u");
  resumed.set_steps_completed(400);
  found = variables(resumed, around("CPU", 2));
  CHECK(found["DET_LATEST_CHECKPOINT"] == "u");
  CHECK(found["DET_STEPS_COMPLETED"] == "400");
  CHECK(found["DET_USER_TOKEN"] == "task-1.a.2.secret");
}

TEST_CASE("Python output is unbuffered unless the user overrides PYTHONUNBUFFERED", "[environment]") {
  v1::StartAllocation start = order();
  CHECK(variables(start, around("CPU", 1)).at("PYTHONUNBUFFERED") == "1");
  (*start.mutable_environment())["PYTHONUNBUFFERED"] = "";
  CHECK(variables(start, around("CPU", 1)).at("PYTHONUNBUFFERED").empty());
}

TEST_CASE("thread counts follow the task's share of the cores", "[environment]") {
  CHECK(variables(order(), around("CPU", 1))["OMP_NUM_THREADS"] == "8");
  CHECK(variables(order(), around("CPU", 1))["DET_DEFAULT_THREADS"] == "8");
  CHECK(variables(order(), around("CPU", 2))["OPENBLAS_NUM_THREADS"] == "4");
  CHECK(variables(order(), around("CPU", 100))["OMP_NUM_THREADS"] == "1");
  CHECK(variables(order(), around("ARTIFICIAL", 2))["OMP_NUM_THREADS"] == "1");
  auto two = order();
  two.add_slots(0);
  CHECK(variables(two, around("CPU", 4))["OMP_NUM_THREADS"] == "2");
}

TEST_CASE("idle OpenMP threads sleep soon unless the user chose how they wait", "[environment]") {
  v1::StartAllocation start = order();
  CHECK(variables(start, around("CPU", 1))["GOMP_SPINCOUNT"] == "1000");
  (*start.mutable_environment())["OMP_WAIT_POLICY"] = "ACTIVE";
  CHECK_FALSE(variables(start, around("CPU", 1)).contains("GOMP_SPINCOUNT"));
  (*start.mutable_environment())["GOMP_SPINCOUNT"] = "7";
  CHECK(variables(start, around("CPU", 1)).at("GOMP_SPINCOUNT") == "7");
}

TEST_CASE("a task sees only the CUDA devices of its slots", "[environment]") {
  auto two = order();
  two.add_slots(3);
  CHECK(variables(two, around("CUDA", 4))["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-3");
  CHECK(variables(two, around("CPU", 4))["CUDA_VISIBLE_DEVICES"].empty());
}

TEST_CASE("a task on a slot of a shared GPU uses its share through MPS", "[environment]") {
  Surroundings here = around("CUDA", 4);
  CHECK_FALSE(variables(order(), here).contains("CUDA_MPS_PIPE_DIRECTORY"));
  here.mps_pipes = "/data/mps/pipes";
  here.slots_per_device = 3;
  auto greedy = order();
  (*greedy.mutable_environment())["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = "100";
  (*greedy.mutable_environment())["CUDA_MPS_PIPE_DIRECTORY"] = "/tmp/own";
  auto found = variables(greedy, here);
  CHECK(found["CUDA_MPS_PIPE_DIRECTORY"] == "/data/mps/pipes");
  CHECK(found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "33");
  CHECK(found["CUDA_VISIBLE_DEVICES"] == "GPU-1");
  v1::StartAllocation none = order();
  none.clear_slots();
  CHECK_FALSE(variables(none, here).contains("CUDA_MPS_PIPE_DIRECTORY"));
}

TEST_CASE("the user's variables override the agent's, except DET_*", "[environment]") {
  auto with = order();
  (*with.mutable_environment())["OMP_NUM_THREADS"] = "3";
  (*with.mutable_environment())["ODD"] = "a=b\r\n;$(x)";
  (*with.mutable_environment())["DET_MASTER"] = "elsewhere";
  (*with.mutable_environment())["no name"] = "x";
  std::vector<std::string> refused;
  auto found = variables(with, around("CPU", 2), &refused);
  CHECK(found["OMP_NUM_THREADS"] == "3");
  CHECK(found.count("DET_DEFAULT_THREADS") == 0);
  CHECK(found["ODD"] == "a=b\r\n;$(x)");
  CHECK(found["DET_MASTER"] == "http://h:1");
  CHECK(refused.size() == 2);
}

TEST_CASE("a gang member gets the rendezvous address, its first rank and the world size", "[environment]") {
  v1::StartAllocation gang = order();
  CHECK_FALSE(variables(gang, around("CPU", 2)).contains("DET_NUM_NODES"));
  const int slots[] = {3, 2, 1};
  for (const int count : slots) {
    v1::GangPart* part = gang.add_gang();
    part->set_address("10.0.0." + std::to_string(count));
    part->set_slots(count);
  }
  gang.set_part(2);
  gang.set_gang_port(29407);
  auto found = variables(gang, around("CPU", 2));
  CHECK(found["DET_CHIEF_IP"] == "10.0.0.3");
  CHECK(found["C10D_PORT"] == "29407");
  CHECK(found["DET_NUM_NODES"] == "3");
  CHECK(found["DET_NODE_RANK"] == "2");
  CHECK(found["DET_FIRST_RANK"] == "5");
  CHECK(found["DET_WORLD_SIZE"] == "6");
}

TEST_CASE("rendezvous ports are unique per allocation", "[environment]") {
  v1::StartAllocation gang = order(), other = order();
  other.set_slots(0, 0);
  for (int i = 0; i < 2; ++i) gang.add_gang()->set_slots(1);
  gang.set_gang_port(29400);
  v1::StartAllocation next = gang;
  next.set_gang_port(31399);
  std::set<std::string> ports;
  v1::StartAllocation far = order();
  far.set_slots(0, 63);
  const auto look = [&](const v1::StartAllocation& one, int block) {
    Surroundings here = around("CPU", 2);
    here.port_block = block;
    auto found = variables(one, here);
    for (const char* name :
         {"C10D_PORT", "INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2"})
      CHECK(ports.insert(found[name]).second);
  };
  look(gang, 0), look(next, 0);
  for (int block = 0; block < PortBlock::kBlocks; ++block)
    look(order(), block), look(other, block), look(far, block);
  v1::StartAllocation none = order();
  none.clear_slots();
  CHECK_FALSE(variables(none, around("CPU", 2)).contains("C10D_PORT"));
}

TEST_CASE("agents on one machine use disjoint ports, stable across restarts", "[environment]") {
  auto one = std::make_unique<PortBlock>("instance");
  const int number = one->number();
  auto other = std::make_unique<PortBlock>("instance");
  CHECK(other->number() != number);
  one.reset();
  CHECK(PortBlock("instance").number() == number);
}

TEST_CASE("a task gets only listed variables of the agent's environment", "[environment]") {
  Surroundings here = around("CPU", 2);
  here.base = {"HOME=/root",   "DET_AGENT_DATA_DIR=/secret", "PATH=/bin",      "=odd",           "bare",
               "SECRET=shell", "AWS_ACCESS_KEY_ID=key",      "LC_ALL=C.UTF-8", "NCCL_DEBUG=INFO"};
  here.pass = {"AWS_ACCESS_KEY_ID", "DET_AGENT_DATA_DIR"};
  auto found = variables(order(), here);
  CHECK(found["HOME"] == "/r/home");
  CHECK(found["PATH"] == "/p/bin:/bin");
  CHECK(found["LC_ALL"] == "C.UTF-8");
  CHECK(found["NCCL_DEBUG"] == "INFO");
  CHECK(found["AWS_ACCESS_KEY_ID"] == "key");
  CHECK_FALSE(found.contains("SECRET"));
  CHECK_FALSE(found.contains("DET_AGENT_DATA_DIR"));
}

TEST_CASE("a task with an image has the variables of the image instead of the agent's", "[environment]") {
  Surroundings here = around("CPU", 2);
  here.base = {"PATH=/machine", "LANG=de_DE", "NCCL_DEBUG=INFO", "AWS_ACCESS_KEY_ID=key"};
  here.pass = {"AWS_ACCESS_KEY_ID"};
  here.image = {"PATH=/opt/conda/bin:/bin", "LANG=C.UTF-8", "HOME=/root", "DET_MASTER=http://elsewhere",
                "bare"};
  auto found = variables(order(), here);
  CHECK(found["PATH"] == "/opt/conda/bin:/bin");
  CHECK(found["LANG"] == "C.UTF-8");
  CHECK(found["HOME"] == "/r/home");
  CHECK(found["DET_MASTER"] == "http://h:1");
  CHECK(found["AWS_ACCESS_KEY_ID"] == "key");
  CHECK_FALSE(found.contains("NCCL_DEBUG"));
  here.image->clear();
  CHECK(variables(order(), here)["PATH"] == "/usr/local/bin:/usr/bin:/bin");
  // Libraries of the GPU driver come before those of the image and of the user.
  here.driver = "/run/nvidia";
  CHECK(variables(order(), here)["LD_LIBRARY_PATH"] == "/run/nvidia");
  here.image->push_back("LD_LIBRARY_PATH=/usr/local/cuda/lib64");
  CHECK(variables(order(), here)["LD_LIBRARY_PATH"] == "/run/nvidia:/usr/local/cuda/lib64");
}

TEST_CASE("variables that name a task do not distinguish two environments for libraries", "[agent]") {
  const std::vector<std::string> first{"PATH=/bin",      "HOME=/a",       "USER=u",
                                       "DET_TRIAL_ID=1", "C10D_PORT=130", "OMP_NUM_THREADS=1"};
  const std::vector<std::string> second{"OMP_NUM_THREADS=1", "PATH=/bin", "HOME=/b", "DET_TRIAL_ID=2",
                                        "INTER_TRAIN_PROCESS_COMM_PORT_1=140"};
  CHECK(load_environment(first) == std::vector<std::string>{"OMP_NUM_THREADS=1", "PATH=/bin"});
  CHECK(load_environment(second) == load_environment(first));
  CHECK(load_environment({"PATH=/bin", "HOMES=1"}) == std::vector<std::string>{"HOMES=1", "PATH=/bin"});
}

TEST_CASE("the environment of a command has no trial variables") {
  v1::StartAllocation command;
  command.set_allocation_id("c.1");
  command.set_task_id("c");
  command.set_run(1);
  command.set_token("secret");
  const auto found = variables(command, around("CPU", 1));
  CHECK(found.at("DET_TASK_TYPE") == "COMMAND");
  CHECK(found.at("DET_TASK_ID") == "c");
  for (const char* name : {"DET_TRIAL_ID", "DET_EXPERIMENT_ID", "DET_HPARAMS", "DET_EXPERIMENT_CONFIG"}) {
    INFO(name);
    CHECK_FALSE(found.contains(name));
  }
}
