// COMMAND: the list of commands, by which clients find keys and print help.
#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>

#include "base/text/text.hpp"
#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_syntax.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

void reply_names(call& c, std::uint64_t bits, std::span<const std::string_view> names) {
    c.reply.set(static_cast<std::size_t>(std::popcount(bits)));
    for (std::size_t i = 0; i < names.size(); ++i) {
        if ((bits >> i & 1) != 0) c.reply.simple(names[i]);
    }
}

void reply_word_set(call& c, std::string_view words, char between) {
    std::size_t count = 0;
    for_each_word(words, between, [&count](std::string_view) { ++count; });
    c.reply.set(count);
    for_each_word(words, between, [&c](std::string_view word) { c.reply.simple(word); });
}

void reply_number(call& c, std::string_view name, int value) {
    c.reply.bulk(name);
    c.reply.integer(value);
}

void reply_key_spec(call& c, const key_spec& spec) {
    c.reply.map(3);
    c.reply.bulk("flags");
    reply_word_set(c, spec.flags, ' ');
    c.reply.bulk("begin_search");
    c.reply.map(2);
    c.reply.bulk("type");
    c.reply.bulk(spec.begin == 'i' ? "index" : spec.begin == 'k' ? "keyword" : "unknown");
    c.reply.bulk("spec");
    c.reply.map(spec.begin == 'i' ? 1 : spec.begin == 'k' ? 2 : 0);
    if (spec.begin == 'k') {
        c.reply.bulk("keyword");
        c.reply.bulk(spec.keyword);
        reply_number(c, "startfrom", spec.from);
    } else if (spec.begin == 'i') {
        reply_number(c, "index", spec.from);
    }
    c.reply.bulk("find_keys");
    c.reply.map(2);
    c.reply.bulk("type");
    c.reply.bulk(spec.find == 'r' ? "range" : spec.find == 'n' ? "keynum" : "unknown");
    c.reply.bulk("spec");
    c.reply.map(spec.find == 'u' ? 0 : 3);
    if (spec.find == 'u') return;
    const bool range = spec.find == 'r';
    reply_number(c, range ? "lastkey" : "keynumidx", spec.numbers[0]);
    reply_number(c, range ? "keystep" : "firstkey", spec.numbers[1]);
    reply_number(c, range ? "limit" : "keystep", spec.numbers[2]);
}

// Reply of COMMAND INFO for a command or a form.
void reply_spec(call& c, const command_spec& what) {
    c.reply.array(10);
    c.reply.bulk(what.name);
    c.reply.integer(what.arity);
    reply_names(c, what.shown_flags, command_flag_names());
    for (const int each : {what.first_key, what.last_key, what.key_step}) c.reply.integer(each);
    reply_names(c, what.categories, command_category_names());
    std::size_t tip_count = 0;
    for_each_word(what.tips, ',', [&tip_count](std::string_view) { ++tip_count; });
    c.reply.set(tip_count);
    for_each_word(what.tips, ',', [&c](std::string_view tip) { c.reply.bulk(tip); });
    const auto keys = parse_key_specs(what.key_specs);
    c.reply.set(keys.size());
    for (const key_spec& each : keys) reply_key_spec(c, each);
    c.reply.array(what.form_count);
    for (const command_spec& each : what.forms()) reply_spec(c, each);
}

// The command "config" or the form "config|get", in any case; null when there is none.
const command_spec* find_any(const call& c, std::string_view name) {
    const std::size_t bar = name.find('|');
    const command_spec* const spec =
        find_named(c.state.settings.renamed.get(), fold_command_name(name.substr(0, bar)));
    if (spec == nullptr || bar == std::string_view::npos) return spec;
    return find_form(*spec, name.substr(bar + 1));
}

// Renamed commands have their old names in all replies, as in Redis; commands without a name are
// left out.
bool is_callable(const call& c, const command_spec& spec) noexcept {
    return c.state.settings.renamed == nullptr || c.state.settings.renamed->is_callable(spec);
}

std::vector<const command_spec*> callable_commands(const call& c) {
    std::vector<const command_spec*> found;
    for (const command_spec& each : all_commands()) {
        if (is_callable(c, each)) found.push_back(&each);
    }
    return found;
}

void reply_all(call& c) {
    const auto all = callable_commands(c);
    c.reply.array(all.size());
    for (const command_spec* const each : all) reply_spec(c, *each);
}

}  // namespace

void command_info(call& c) {
    if (c.count == 2) return reply_all(c);
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        if (const command_spec* const spec = find_any(c, c.arg(i)))
            reply_spec(c, *spec);
        else
            c.reply.null();
    }
}

namespace {

// Replies nothing for an empty text.
void reply_text(call& c, std::string_view name, std::string_view text) {
    if (text.empty()) return;
    c.reply.bulk(name);
    c.reply.bulk(text);
}

void reply_arguments(call& c, std::span<const command_argument> arguments) {
    c.reply.bulk("arguments");
    c.reply.array(arguments.size());
    for (const command_argument& each : arguments) {
        const bool is_group = !each.arguments.empty();
        const bool has_flags = each.optional || each.multiple;
        // MIGRATE's token for no key is an empty one.
        const bool has_token = !each.token.empty() || each.type == "pure-token";
        c.reply.map(3U + (each.key_group >= 0) + has_token + !each.since.empty() +
                    !each.deprecated_since.empty() + has_flags);
        reply_text(c, "name", each.name);
        reply_text(c, "type", each.type);
        if (!is_group)
            reply_text(c, "display_text", each.display.empty() ? each.name : each.display);
        if (each.key_group >= 0) reply_number(c, "key_spec_index", each.key_group);
        if (has_token) {
            c.reply.bulk("token");
            c.reply.bulk(each.token);
        }
        reply_text(c, "since", each.since);
        reply_text(c, "deprecated_since", each.deprecated_since);
        if (has_flags) {
            c.reply.bulk("flags");
            c.reply.set(std::size_t{each.optional} + each.multiple + each.repeats_token);
            if (each.optional) c.reply.simple("optional");
            if (each.multiple) c.reply.simple("multiple");
            if (each.repeats_token) c.reply.simple("multiple_token");
        }
        if (is_group) reply_arguments(c, each.arguments);
    }
}

// Reply of COMMAND DOCS for a command with its forms, or for one form.
void reply_docs(call& c, const command_spec& what) {
    const auto arguments = parse_arguments(what.syntax);
    EDDY_ASSERT(arguments);
    const bool is_deprecated = !what.deprecated_since.empty();
    const bool is_system_command = (what.flags & command_flag::syscmd) != 0;
    const bool has_flags = is_deprecated || is_system_command;
    c.reply.bulk(what.name);
    c.reply.map(3U + has_flags + is_deprecated + !arguments->empty() + (what.form_count != 0));
    reply_text(c, "summary", what.summary);
    reply_text(c, "since", what.since);
    reply_text(c, "group", what.group);
    if (has_flags) {
        c.reply.bulk("doc_flags");
        c.reply.set(std::size_t{is_deprecated} + is_system_command);
        if (is_deprecated) c.reply.simple("deprecated");
        if (is_system_command) c.reply.simple("syscmd");
    }
    reply_text(c, "deprecated_since", what.deprecated_since);
    if (!arguments->empty()) reply_arguments(c, *arguments);
    if (what.form_count == 0) return;
    c.reply.bulk("subcommands");
    c.reply.map(what.form_count);
    for (const command_spec& each : what.forms()) reply_docs(c, each);
}

}  // namespace

// A name given twice is replied once, as in Redis.
void command_docs(call& c) {
    std::vector<const command_spec*> wanted;
    if (c.count == 2) wanted = callable_commands(c);
    for (std::size_t i = 2; i < c.count; ++i) {
        const command_spec* const found = find_any(c, c.arg(i));
        if (found != nullptr && std::ranges::find(wanted, found) == wanted.end())
            wanted.push_back(found);
    }
    c.reply.map(wanted.size());
    for (const command_spec* const each : wanted) {
        if (c.reply_is_too_large()) return;
        reply_docs(c, *each);
    }
}

namespace {

enum class with_flags : bool { no, yes };

void reply_keys(call& c, with_flags flags) {
    const command_spec* const spec =
        find_named(c.state.settings.renamed.get(), fold_command_name(c.arg(2)));
    if (spec == nullptr) return c.error("ERR Invalid command specified");
    const std::span<const std::string_view> args(c.args + 2, c.count - 2);
    const bool names_form = spec->form_count != 0 && args.size() > 1;
    if (names_form && find_form(*spec, args[1]) == nullptr)
        return c.error("ERR Invalid command specified");
    if (!has_keys(*spec, args)) return c.error("ERR The command has no key arguments");
    const auto given = static_cast<std::int64_t>(c.count) - 2;
    if (spec->arity >= 0 ? given != spec->arity : given < -spec->arity) {
        return c.error("ERR Invalid number of arguments specified for command");
    }
    const auto keys = find_key_arguments(*spec, args);
    if (!keys || keys->empty()) {
        // EVAL may come without keys, or with a number of them that makes no sense; others may not.
        if ((spec->shown_flags & command_flag::no_mandatory_keys) == 0) {
            return c.error("ERR Invalid arguments specified for command");
        }
        return c.reply.array(0);
    }
    c.reply.array(keys->size());
    for (const key_argument& each : *keys) {
        if (c.reply_is_too_large()) return;
        const std::string_view key = c.arg(each.index + 2);
        if (flags == with_flags::no) {
            c.reply.bulk(key);
        } else {
            c.reply.array(2);
            c.reply.bulk(key);
            reply_word_set(c, each.flags, ' ');
        }
    }
}

}  // namespace

void command_getkeys(call& c) { reply_keys(c, with_flags::no); }
void command_getkeysandflags(call& c) { reply_keys(c, with_flags::yes); }

void command_list(call& c) {
    enum class filter : std::uint8_t { none, nothing, category, pattern };
    filter by = filter::none;
    std::uint32_t category = 0;
    std::string pattern;
    if (c.count != 2) {
        if (c.count != 5 || !is_word(c.arg(2), "filterby")) return c.syntax_error();
        pattern = lower(c.arg(4));
        if (is_word(c.arg(3), "module")) {
            by = filter::nothing;
        } else if (is_word(c.arg(3), "aclcat")) {
            by = filter::category;
            const auto names = command_category_names();
            const auto found = std::ranges::find(names, "@" + pattern);
            if (found != names.end()) category = 1U << (found - names.begin());
        } else if (is_word(c.arg(3), "pattern")) {
            by = filter::pattern;
        } else {
            return c.syntax_error();
        }
    }
    std::vector<std::string_view> found;
    const auto add = [&](const command_spec& spec) {
        const bool wanted = by == filter::none ||
                            (by == filter::pattern && glob_match(pattern, spec.name)) ||
                            (by == filter::category && (spec.categories & category) != 0);
        if (wanted) found.push_back(spec.name);
    };
    for (const command_spec* const each : callable_commands(c)) {
        add(*each);
        std::ranges::for_each(each->forms(), add);
    }
    c.reply.array(found.size());
    for (const std::string_view name : found) c.reply.bulk(name);
}

void command_count(call& c) {
    c.reply.integer(static_cast<std::int64_t>(callable_commands(c).size()));
}

void command_help(call& c) {
    c.help({"COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "(no subcommand)",
            "    All commands.", "COUNT", "    Their number.", "DOCS [<command-name> ...]",
            "    What they are for, and their arguments.", "GETKEYS <full-command>",
            "    The keys among its arguments.", "GETKEYSANDFLAGS <full-command>",
            "    The same, and what is done with them.", "INFO [<command-name> ...]",
            "    Arity, flags and keys.", "LIST [FILTERBY (MODULE|ACLCAT|PATTERN) <what>]",
            "    Their names, and those of their forms.", "HELP", "    Print this help."});
}

void command(call& c) { c.count == 1 ? reply_all(c) : subcommand(c); }

}  // namespace eddy::cache::commands
