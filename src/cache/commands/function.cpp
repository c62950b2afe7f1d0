// FUNCTION and FCALL.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/glob.hpp>

#include "base/text/text.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/rdb/crc64.hpp"
#include "cache/rdb/format.hpp"
#include "cache/rdb/payload.hpp"
#include "cache/rdb/reader.hpp"
#include "cache/rdb/value_writer.hpp"
#include "cache/script/functions.hpp"
#include "cache/script/script_text.hpp"
#include "cache/script/scripting.hpp"
#include "cache/script/scripts.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 5> flag_names{{
    {script_flag::no_writes, "no-writes"},
    {script_flag::allow_oom, "allow-oom"},
    {script_flag::allow_stale, "allow-stale"},
    {script_flag::no_cluster, "no-cluster"},
    {script_flag::allow_cross_slot_keys, "allow-cross-slot-keys"},
}};

void fcall_now(call& c, bool read_only) {
    libraries& all = scripts_of(c).functions();
    const libraries::function* const found = all.find(c.arg(1));
    if (found == nullptr) return c.error("ERR Function not found");
    const auto count = c.integer(2, "ERR Bad number of keys provided");
    if (!count) return;
    if (*count > static_cast<std::int64_t>(c.count) - 3) {
        return c.error("ERR Number of keys can't be greater than number of args");
    }
    if (*count < 0) return c.error("ERR Number of keys can't be negative");
    script_call what;
    what.in = &all.sandbox();
    what.function = found->reference;
    what.name = found->name;
    what.flags = found->flags;
    what.read_only = read_only;
    what.is_function = true;
    what.first_key = 3;
    what.keys = static_cast<std::size_t>(*count);
    what.arguments = c.count - 3 - what.keys;
    scripts_of(c).runner().run(c, what);
}

}  // namespace

void function_load(call& c) {
    bool replace = false;
    for (std::size_t i = 2; i + 1 < c.count; ++i) {
        if (!is_word(c.arg(i), "replace")) {
            return c.error("ERR Unknown option given: " + std::string(c.arg(i)));
        }
        replace = true;
    }
    std::string why;
    const std::string name = scripts_of(c).functions().load(c.arg(c.count - 1), replace, why);
    if (name.empty()) return c.error("ERR " + why);
    ++c.state.data.changes;
    c.reply.bulk(name);
}

static void reply_library(call& c, const libraries::library& one, bool with_code) {
    c.reply.map(with_code ? 4 : 3);
    c.reply.bulk("library_name");
    c.reply.bulk(one.name);
    c.reply.bulk("engine");
    c.reply.bulk("LUA");
    c.reply.bulk("functions");
    c.reply.array(one.functions.size());
    for (const auto& each : one.functions) {
        c.reply.map(3);
        c.reply.bulk("name");
        c.reply.bulk(each->name);
        c.reply.bulk("description");
        if (each->is_described)
            c.reply.bulk(each->description);
        else
            c.reply.null();
        c.reply.bulk("flags");
        std::size_t flags = 0;
        for (const auto& [bit, name] : flag_names) flags += (each->flags & bit) != 0 ? 1 : 0;
        c.reply.set(flags);
        for (const auto& [bit, name] : flag_names) {
            if ((each->flags & bit) != 0) c.reply.simple(name);
        }
    }
    if (!with_code) return;
    c.reply.bulk("library_code");
    c.reply.bulk(one.code);
}

void function_list(call& c) {
    bool with_code = false;
    bool has_pattern = false;
    std::string pattern;
    for (std::size_t i = 2; i < c.count; ++i) {
        if (!with_code && is_word(c.arg(i), "withcode")) {
            with_code = true;
        } else if (!has_pattern && is_word(c.arg(i), "libraryname")) {
            if (i + 1 >= c.count) return c.error("ERR library name argument was not given");
            pattern = lower(c.arg(++i));
            has_pattern = true;
        } else {
            return c.error("ERR Unknown argument " + std::string(c.arg(i)));
        }
    }
    std::vector<const libraries::library*> wanted;
    for (const auto& each : scripts_of(c).functions().all()) {
        if (!has_pattern || glob_match(pattern, lower(each->name))) wanted.push_back(each.get());
    }
    c.reply.array(wanted.size());
    for (const libraries::library* const each : wanted) {
        if (c.reply_is_too_large()) return;
        reply_library(c, *each, with_code);
    }
}

void function_stats(call& c) {
    scripts& all = scripts_of(c);
    c.reply.map(2);
    c.reply.bulk("running_script");
    const script_call* const running = all.runner().running();
    if (running != nullptr && running->is_function) {
        c.reply.map(3);
        c.reply.bulk("name");
        c.reply.bulk(running->name);
        c.reply.bulk("command");
        c.reply.array(all.runner().running_command().size());
        for (const std::string& each : all.runner().running_command()) c.reply.bulk(each);
        c.reply.bulk("duration_ms");
        c.reply.integer(all.runner().running_ms());
    } else {
        c.reply.null();
    }
    c.reply.bulk("engines");
    c.reply.map(1);
    c.reply.bulk("LUA");
    c.reply.map(2);
    c.reply.bulk("libraries_count");
    c.reply.integer(static_cast<std::int64_t>(all.functions().size()));
    c.reply.bulk("functions_count");
    c.reply.integer(static_cast<std::int64_t>(all.functions().function_count()));
}

void function_delete(call& c) {
    if (!scripts_of(c).functions().remove(c.arg(2))) return c.error("ERR Library not found");
    ++c.state.data.changes;
    c.reply.ok();
}

void function_flush(call& c) {
    if (c.count > 3) return c.wrong_subcommand();
    if (c.count == 3 && !is_word(c.arg(2), "sync") && !is_word(c.arg(2), "async"))
        return c.error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
    scripts_of(c).functions().flush();
    ++c.state.data.changes;
    c.reply.ok();
}

void function_dump(call& c) {
    byte_buffer payload;
    for (const auto& each : scripts_of(c).functions().all()) {
        rdb::put_library(payload, each->code);
    }
    rdb::put_little(payload, rdb::written_version, 2);
    rdb::put_little(payload, rdb::crc64(0, payload.text()), rdb::checksum_bytes);
    c.reply.bulk(payload.text());
}

namespace {

// Takes the libraries of a payload.
class library_reader final : public rdb::consumer {
public:
    explicit library_reader(std::vector<std::string>& to) : to_(to) {}
    rdb::refusal library(std::string_view code) override {
        to_.emplace_back(code);
        return rdb::accepted;
    }
    rdb::refusal begin(const rdb::key_header&) override { return no_key; }
    rdb::refusal text(std::string_view) override { return no_key; }
    rdb::refusal element(std::string_view) override { return no_key; }
    rdb::refusal member(std::string_view) override { return no_key; }
    rdb::refusal scored(std::string_view, double) override { return no_key; }
    rdb::refusal field(std::string_view, std::string_view) override { return no_key; }
    rdb::refusal end() override { return no_key; }

private:
    static constexpr rdb::refusal no_key = "given type is not a function";
    std::vector<std::string>& to_;
};

// False with the error replied. The payload is an RDB file's middle.
bool read_libraries(call& c, std::string_view payload, std::vector<std::string>& codes) {
    library_reader to(codes);
    rdb::reader reader(to);
    reader.feed("REDIS0010");
    reader.feed(payload);
    const char end = static_cast<char>(rdb::opcode::end);
    reader.feed({&end, 1});
    reader.feed(std::string_view("\0\0\0\0\0\0\0\0", rdb::checksum_bytes));
    if (reader.now() == rdb::reader::status::done) return true;
    const bool is_key =
        reader.now() == rdb::reader::status::failed &&
        std::string_view(reader.fault().what).find("not a function") != std::string_view::npos;
    c.error(is_key ? "ERR given type is not a function" : "ERR Failed loading library data");
    return false;
}

}  // namespace

// All of them or none: what was there comes back when one does not load.
void function_restore(call& c) {
    enum class policy : std::uint8_t { append, flush, replace };
    policy chosen = policy::append;
    if (c.count > 4) {
        return c.error(
            "ERR unknown subcommand or wrong number of arguments for 'restore'. Try FUNCTION "
            "HELP.");
    }
    if (c.count == 4) {
        if (is_word(c.arg(3), "flush")) {
            chosen = policy::flush;
        } else if (is_word(c.arg(3), "replace")) {
            chosen = policy::replace;
        } else if (!is_word(c.arg(3), "append")) {
            return c.error(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
        }
    }
    const auto payload = rdb::checked_payload(c.arg(2));
    if (!payload) return c.error(rdb::payload_error(c.arg(2)));
    std::vector<std::string> codes;
    if (!read_libraries(c, payload->value, codes)) return;
    libraries& all = scripts_of(c).functions();
    std::vector<std::string> before;
    for (const auto& each : all.all()) before.push_back(each->code);
    if (chosen == policy::flush) all.flush();
    std::string why;
    for (const std::string& each : codes) {
        if (!all.load(each, chosen == policy::replace, why).empty()) continue;
        all.flush();
        std::string ignored;
        for (const std::string& old : before) all.load(old, true, ignored);
        // Without quotes in Redis.
        std::erase(why, '\'');
        return c.error("ERR " + why);
    }
    ++c.state.data.changes;
    c.reply.ok();
}

void fcall(call& c) {
    scripting::run_with_scripts(c, [](call& inner) { fcall_now(inner, false); });
}
void fcall_ro(call& c) {
    scripting::run_with_scripts(c, [](call& inner) { fcall_now(inner, true); });
}

void function_kill(call& c) { kill_script(c, true); }

void function_help(call& c) {
    c.help({"FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "LOAD [REPLACE] <code>", "    Makes a library of the code.", "DELETE <library>",
            "    Deletes a library.", "LIST [LIBRARYNAME pattern] [WITHCODE]",
            "    What libraries there are.", "STATS",
            "    The function that runs, and how many there are.", "KILL",
            "    Ends the function that runs, if it has not written.", "FLUSH [ASYNC|SYNC]",
            "    Deletes all libraries.", "DUMP", "    All libraries as bytes for RESTORE.",
            "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
            "    Brings libraries back; APPEND refuses those that are there already.", "HELP",
            "    Print this help."});
}

}  // namespace eddy::cache::commands
