// Checks and conversion of the header of an HTTP/1.1 request that Beast has parsed.
#pragma once

#include <boost/beast/http/message.hpp>
#include <string>

#include "master/http/message.h"

namespace det::http {

using RequestHead = boost::beast::http::request_header<>;

/// Returns what is wrong with a header that Beast accepts, or null: other versions, no or several Hosts,
/// framing that enables request smuggling, malformed targets.
const char* header_problem(const RequestHead& head);
/// Converts a header; `peer` is the address of the client.
Request to_request(const RequestHead& head, const std::string& peer);

}  // namespace det::http
