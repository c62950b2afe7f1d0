// Subcommands ("forms") of container commands: their ACL categories and their entry in COMMAND.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace eddy::cache::acl {

struct command_form {
    std::string_view name;     ///< "config|set"
    std::uint32_t categories;  ///< bits, in the order of command_category_names
    int arity;                 ///< with both words; negative: so many at least
    std::uint32_t flags;       ///< bits, in the order of command_flag_names
    std::string_view tips;     ///< separated by commas
    bool alters = false;       ///< as command_flag::alters
};

/// In order of their names, so that those of one command stand together. Commands that the cache
/// does not have yet are here, too.
std::span<const command_form> command_forms() noexcept;
/// The part of it that is the command's, by its lower-case name; empty where it has but one.
std::span<const command_form> forms_of(std::string_view command) noexcept;
/// The one of them that this word stands for, in any case, or null.
const command_form* find_form(std::string_view command, std::string_view word) noexcept;

}  // namespace eddy::cache::acl
