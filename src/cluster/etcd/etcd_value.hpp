// Values of members' keys in etcd: the JSON text of a member, cut to etcd's limit on requests.
#pragma once

#include "base/problem.hpp"
#include "cluster/membership.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::cluster {

/// Text of a member.
struct etcd_value {
    std::string text;
    std::size_t shown = 0;  ///< of its runtimes, the first ones by name
};

/// The member with as many of its runtimes as fit into `most` bytes. Refuses a member that has no
/// text, and one that does not fit without runtimes.
outcome<etcd_value> write_etcd_value(const member_info& of, std::size_t most);
/// The member of a key that ends in `name`. The sentence of a refusal follows "it".
outcome<member_info> read_etcd_value(std::string_view name, std::string_view text);

}  // namespace eddy::cluster
