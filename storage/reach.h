// Owns which stores a process contacts for others: whoever names an endpoint has the process send requests
// there, and what answers on the process's own machine or link (a cloud's metadata, an unguarded service) was
// never meant for strangers.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace det::storage {

struct Reach {
  bool anywhere = true;            ///< a user's own process: what it is told to contact is its user's affair
  std::vector<std::string> hosts;  ///< else: the hosts that endpoints may name, whatever their addresses are;
                                   ///< none: any host with an outer address
  std::string own;                 ///< the endpoint of the operator's own storage; as good as one of `hosts`
};

/// What this process's buckets are held to from now on. Before threads begin; without it they are anywhere.
void confine(Reach reach);
const Reach& confines();

/// The host of http[s]://HOST[:PORT], without brackets and in lower case.
std::string host_of(const std::string& endpoint);

/// Whether the addresses of the endpoint's host do not matter.
bool is_trusted(const Reach& reach, const std::string& endpoint);

/// "" or why the endpoint may not be contacted, with the mend, as far as its text tells. "": Amazon's.
std::string refusal_of(const Reach& reach, const std::string& endpoint);

/// Loopback, link-local, unspecified, or a cloud's metadata; of IPv4 also in the forms that IPv6 has for it.
bool is_inner(const sockaddr& address);

/// "ADDRESS is …; mend", for an inner address that was met.
std::string inner_words(const std::string& address);

}  // namespace det::storage
