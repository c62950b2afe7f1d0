// The forms of commands that have several, each with the categories that ACLs know it by.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache::acl {

struct command_form {
    std::string_view name;     ///< "config|set"
    std::uint32_t categories;  ///< bits, in the order of command_category_names
};

/// In order of their names, so that those of one command stand together. Commands that the cache
/// does not have yet are here, too.
std::span<const command_form> command_forms() noexcept;

}  // namespace eddy::cache::acl
