// Conversion between JSON and pickle values, and checked access to values.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/src/checkpoint/pickle.h"

namespace det::pickle {

using Json = nlohmann::ordered_json;

Value to_value(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return json.get<std::int64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get<std::string>();
    case Json::value_t::array: {
      List list;
      for (const Json& item : json) list.push_back(to_value(item));
      return list;
    }
    case Json::value_t::object: {
      Dict dict;
      for (const auto& [key, item] : json.items()) dict.add(key, to_value(item));
      return dict;
    }
    default:
      return {};
  }
}

Json from_value(const Value& value, const std::string& name) {
  if (const auto* v = value.as<bool>()) return *v;
  if (const auto* v = value.as<std::int64_t>()) return *v;
  if (const auto* v = value.as<double>()) return *v;
  if (const auto* v = value.as<std::string>()) return *v;
  // Python keeps some counters (an optimizer's step) as tensors of one element.
  if (const auto* v = value.as<torch::Tensor>(); v != nullptr && v->numel() == 1) {
    if (torch::isFloatingType(v->scalar_type())) return v->item<double>();
    return v->item<std::int64_t>();
  }
  if (const auto* v = value.as<List>()) {
    Json json = Json::array();
    for (std::size_t i = 0; i < v->size(); ++i) {
      json.push_back(from_value((*v)[i], name + "[" + std::to_string(i) + "]"));
    }
    return json;
  }
  if (const auto* v = value.as<Dict>()) {
    Json json = Json::object();
    for (const auto& [key, item] : v->items) json[key] = from_value(item, name + "." + key);
    return json;
  }
  if (value.as<std::monostate>() == nullptr) wrong_kind(value, name);
  return nullptr;
}

const Value& member(const Value& value, const char* name) {
  const Dict* dict = value.as<Dict>();
  const Value* found = dict == nullptr ? nullptr : dict->find(name);
  if (found == nullptr) misfit(std::string(name) + " is missing");
  return *found;
}

void misfit(const std::string& what) { throw std::runtime_error("checkpoint does not fit: " + what); }

void wrong_kind(const Value& value, const std::string& name) {
  if (const auto* v = value.as<Foreign>())
    misfit(name + " is an object of Python's " + v->name + ", not plain data");
  misfit(name + " is of another kind");
}

}  // namespace det::pickle
