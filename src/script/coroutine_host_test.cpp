// Host of a script: what passes between calls and the functions that they wait in, and the limits
// of a script that goes wrong.
#include "script/coroutine_host.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "base/test_rounds.hpp"
#include "io/testing.hpp"
#include "lua/errors.hpp"
#include "script/testing.hpp"
#include "script/time_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::script {
namespace {

using namespace eddy::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(coroutine_host_io);

/// State that the functions below share.
struct workshop {
    event gate;
    std::size_t waiting = 0;
    std::size_t ticks = 0;
    std::size_t freed = 0;  // tasks of wait()
    std::size_t ended = 0;  // calls
    kept_function kept = {};
};

workshop& shop_of(const invocation& of) noexcept { return of.context<workshop>(); }

answer echo(invocation& of) {
    auto copied = of.read(1);
    if (!copied) return answer::misused(std::move(copied.error()));
    return values_of(std::move(*copied));
}

answer add(invocation& of) {
    return values_of(of.number(1) + (of.has(2) ? of.number(2) : 100),
                     std::string(of.text(3)) + "!");
}

answer tick(invocation& of) {
    ++shop_of(of).ticks;
    return {};
}

task<function_result> wait_at(workshop& shop) {
    struct note {
        workshop& in;
        explicit note(workshop& of) noexcept : in(of) { ++in.waiting; }
        ~note() {
            --in.waiting;
            ++in.freed;
        }
    } const here(shop);
    const result<> passed = co_await shop.gate.wait();
    if (!passed) co_return std::unexpected(passed.error().message());
    co_return values_of("passed", 7);
}
answer wait(invocation& of) { return wait_at(shop_of(of)); }

task<function_result> fail_later(std::string text) {
    co_await loop::current().yield();
    co_return std::unexpected(std::move(text));
}
/// At once for a text that begins with "now".
answer fail_with(invocation& of) {
    std::string text(of.text(1));
    if (text.starts_with("now")) return answer::failed(std::move(text));
    return fail_later(std::move(text));
}

task<function_result> answer_soon() { co_return values_of("soon"); }
answer soon(invocation&) { return answer_soon(); }

task<function_result> throw_later() {
    co_await loop::current().yield();
    throw std::bad_alloc();
}
answer throw_now(invocation&) { throw std::bad_alloc(); }
answer throw_after(invocation&) { return throw_later(); }

answer huge(invocation& of) {
    return values_of(std::string(static_cast<std::size_t>(of.number(1)), 'x'));
}
task<function_result> make_huge(std::size_t size) {
    co_await loop::current().yield();
    co_return values_of(std::string(size, 'x'));
}
answer huge_later(invocation& of) { return make_huge(static_cast<std::size_t>(of.number(1))); }

answer count(invocation&) {
    values all;
    for (std::size_t i = 1; i <= max_values; ++i) all.emplace_back(i);
    return all;
}

answer keep(invocation& of) {
    shop_of(of).kept = of.has(2) ? of.take_function() : kept_function();
    return {};
}

constexpr argument text_argument{.name = "text", .kind = argument_kind::text};
constexpr argument count_argument{.name = "count", .kind = argument_kind::number};

constexpr std::array<library_function, 17> rows = {{
    {.name = "keep",
     .arguments = {{text_argument,
                    {.name = "fn", .kind = argument_kind::function, .is_optional = true}}},
     .takes = "a text and a function",
     .help = "",
     .run = keep},
    {.name = "encode", .help = "", .existing = {"cjson", "encode"}},
    {.name = "count", .help = "", .run = count},
    {.name = "echo",
     .arguments = {{{.name = "any", .is_optional = true}}},
     .takes = "a value",
     .help = "",
     .run = echo},
    {.name = "add",
     .arguments = {{count_argument,
                    {.name = "other", .kind = argument_kind::number, .is_optional = true},
                    text_argument}},
     .takes = "two numbers and a text",
     .help = "",
     .run = add},
    {.name = "choose",
     .arguments = {{{.name = "flag", .kind = argument_kind::boolean},
                    {.name = "from", .kind = argument_kind::table}}},
     .takes = "a flag and a table",
     .help = "",
     .run = [](invocation& of) -> answer { return values_of(of.boolean(1)); }},
    {.name = "tick", .help = "", .waits = true, .run = tick},
    {.name = "wait", .help = "", .waits = true, .failure = on_failure::ends, .run = wait},
    {.name = "try",
     .arguments = {{text_argument}},
     .takes = "a text",
     .help = "",
     .waits = true,
     .failure = on_failure::raises,
     .run = fail_with},
    {.name = "ask",
     .arguments = {{text_argument}},
     .help = "",
     .waits = true,
     .failure = on_failure::returns,
     .run = fail_with},
    {.name = "leave",
     .arguments = {{text_argument}},
     .help = "",
     .waits = true,
     .failure = on_failure::ends,
     .run = fail_with},
    {.name = "check", .arguments = {{text_argument}}, .help = "", .run = fail_with},
    {.name = "throw", .help = "", .run = throw_now},
    {.name = "throw_in_wait", .help = "", .waits = true, .run = throw_now},
    {.name = "throw_later", .help = "", .waits = true, .run = throw_after},
    {.name = "huge", .arguments = {{count_argument}}, .help = "", .run = huge},
    {.name = "soon", .help = "", .waits = true, .run = soon},
}};
constexpr std::array<library_function, 1> named_rows = {{
    {.name = "huge", .arguments = {{count_argument}}, .help = "", .waits = true, .run = huge_later},
}};

class test_call final : public call {
public:
    test_call(coroutine_host& in, values arguments, std::size_t callback = 0)
        : call(in, callback), arguments_(std::move(arguments)) {}

private:
    int push_arguments(lua::stack in) override {
        for (const value& each : arguments_) push_value(in, each);
        return static_cast<int>(arguments_.size());
    }
    values arguments_;
};

/// A call that is used again.
class reused_call final : public call {
public:
    using call::call;
    using call::reuse;
    std::string text = {};
    bool has_text = true;

private:
    int push_arguments(lua::stack in) override {
        if (has_text) in.pushstring(text);
        return has_text ? 1 : 0;
    }
};

/// A host of the functions above, with a script whose handle() has these statements.
class subject {
public:
    explicit subject(std::string_view statements, host_limits limits = {})
        : subject("function handle(a, b)\n" + std::string(statements) + "\nend", {}, limits) {
        EXPECT_EQ(fault, "");
    }
    subject(const std::string& text, std::vector<callback> others, host_limits limits = {})
        : host(options(std::move(others), limits)) {
        auto loaded = host.load(text, "host.lua");
        if (!loaded) fault = std::move(loaded.error());
    }

    task<call_end> run(values arguments = {}, std::size_t which = 0) {
        test_call made(host, std::move(arguments), which);
        co_return co_await host.run(made);
    }
    /// The text that it returns, or its failure.
    task<std::string> text_of(values arguments = {}) {
        const call_end end = co_await run(std::move(arguments));
        switch (end.what) {
            case call_end::kind::returned:
                co_return end.results[0].text() != nullptr ? *end.results[0].text() : "no text";
            case call_end::kind::failed: co_return std::string(end.reason) + ": " + end.text;
            case call_end::kind::gone: break;
        }
        co_return "gone";
    }
    task<void> note_end(std::vector<call_end>& into, values arguments = {}) {
        into.push_back(co_await run(std::move(arguments)));
    }

    workshop shop;
    std::string fault;
    coroutine_host host;

private:
    host_options options(std::vector<callback> others, host_limits limits) {
        host_options made;
        made.limits = limits;
        made.callbacks = {
            {.name = "handle", .arguments = "a, b", .is_required = true, .results = 2}};
        for (const callback& each : others) made.callbacks.push_back(each);
        made.libraries = {
            {.functions = rows,
             .context = &shop,
             .ended = [](void* of, const call&) noexcept { ++static_cast<workshop*>(of)->ended; }},
            {.name = "tools", .functions = named_rows},
            time_library()};
        return made;
    }
};

constexpr std::string_view burn =
    "local function burn(s) local e = os.clock() + s while os.clock() < e do end end\n";

TEST_P(coroutine_host_io, runs_at_once_what_does_not_wait) {
    run([]() -> task<void> {
        subject s("return a .. '!'");
        reused_call one(s.host);
        std::size_t used = 0;
        for (int i = 0; i < 1000; ++i) {
            one.reuse(0);
            one.text = "x";
            const call_end* const end = s.host.try_run(one);
            if (end == nullptr || end->results.size() != 2) throw std::runtime_error("no end");
            EXPECT_EQ(*end->results[0].text(), "x!");
            EXPECT_TRUE(end->results[1].is_nil());
            if (i == 10) used = s.host.used_bytes();
        }
        // Without a collection there would be a coroutine for each: a kilobyte.
        EXPECT_LT(s.host.used_bytes(), used + 200'000);
        subject broken("error('no ' .. a)");
        reused_call two(broken.host);
        for (int i = 0; i < 100; ++i) {
            two.reuse(0);
            two.text = "x";
            const call_end* const end = broken.host.try_run(two);
            EXPECT_EQ(end == nullptr ? "" : end->text, "host.lua:2: no x");
        }
        co_return;
    });
}

TEST_P(coroutine_host_io, goes_on_with_what_did_not_end_at_once) {
    run([]() -> task<void> {
        subject s(std::string(burn) +
                      "if a == 'wait' then return (wait()) end if a == 'burn' then burn(0.01) end "
                      "if a == 'leave' then leave('now') end return a",
                  {.slice = 200us});
        reused_call waits(s.host);
        waits.text = "wait";
        EXPECT_EQ(s.host.try_run(waits), nullptr);
        reused_call quick(s.host);
        quick.text = "quick";
        const call_end* end = s.host.try_run(quick);
        EXPECT_EQ(end == nullptr ? "" : *end->results[0].text(), "quick") << "the state is free";
        reused_call burns(s.host);
        burns.text = "burn";
        EXPECT_EQ(s.host.try_run(burns), nullptr);
        quick.reuse(0);
        EXPECT_EQ(s.host.try_run(quick), nullptr) << "another one is in the middle";
        EXPECT_EQ(*(co_await s.host.run(burns)).results[0].text(), "burn");
        EXPECT_EQ(*(co_await s.host.run(quick)).results[0].text(), "quick");
        s.shop.gate.set();
        EXPECT_EQ(*(co_await s.host.run(waits)).results[0].text(), "passed");
        reused_call leaves(s.host);
        leaves.text = "leave";
        end = s.host.try_run(leaves);
        EXPECT_TRUE(end != nullptr && end->what == call_end::kind::gone);
    });
}

TEST_P(coroutine_host_io, notes_each_end_before_the_call_is_used_again) {
    run([]() -> task<void> {
        for (const std::string how : {"", "error('x')", "leave('now')", "wait() error('x')",
                                      "leave('later')", "throw_later()"}) {
            subject s(how);
            reused_call one(s.host);
            s.shop.gate.set();
            if (s.host.try_run(one) == nullptr) static_cast<void>(co_await s.host.run(one));
            EXPECT_EQ(s.shop.ended, 1U) << how;
        }
    });
}

TEST_P(coroutine_host_io, counts_the_time_of_a_round) {
    run([]() -> task<void> {
        subject s("for i = 1, 20000 do end", {.slice = 300us});
        reused_call one(s.host);
        int calls = 0;
        while (!s.host.is_round_over()) {
            if (++calls > 100'000) throw std::runtime_error("it is never over");
            one.reuse(0);
            if (s.host.try_run(one) == nullptr) co_await s.host.run(one);
        }
        EXPECT_GT(calls, 1);
        one.reuse(0);
        EXPECT_EQ(s.host.try_run(one), nullptr) << "none begins before the next turn";
        EXPECT_EQ((co_await s.host.run(one)).what, call_end::kind::returned);
        while (s.host.is_round_over()) co_await loop::current().yield();
    });
}

TEST_P(coroutine_host_io, lets_other_work_run_between_many_calls) {
    run([]() -> task<void> {
        subject s(std::string(burn) + "burn(0.0008) return a", {.slice = 1ms});
        std::vector<call_end> ends;
        std::size_t most = 0;
        co_await with_scope([&](scope& calls) -> task<> {
            for (int i = 0; i < 50; ++i) calls.spawn(s.note_end(ends, values_of(i)));
            for (std::size_t before = 0; ends.size() < 50; before = ends.size()) {
                co_await loop::current().yield();
                most = std::max(most, ends.size() - before);
            }
            co_await calls.join();
        });
        EXPECT_LE(most, 8U) << "calls of one turn or two";
        for (std::size_t i = 0; i < ends.size(); ++i)
            EXPECT_EQ(*ends[i].results.at(0).number(), static_cast<double>(i)) << "in their order";
    });
}

TEST_P(coroutine_host_io, lets_a_queued_caller_overtake_later) {
    run([]() -> task<void> {
        subject s("for i = 1, 20000 do end return a", {.slice = 300us});
        reused_call own(s.host);
        while (!s.host.is_round_over()) {
            own.reuse(0);
            if (s.host.try_run(own) == nullptr) co_await s.host.run(own);
        }
        std::vector<call_end> ends;
        co_await with_scope([&](scope& calls) -> task<> {
            for (int i = 0; i < 3; ++i) calls.spawn(s.note_end(ends, values_of(i)));
            own.reuse(0);
            EXPECT_EQ(s.host.try_run(own, call_order::overtaking), nullptr) << "no call begins now";
            EXPECT_EQ((co_await s.host.run(own)).what, call_end::kind::returned);
            EXPECT_EQ(ends.size(), 3U) << "it has waited in order";
            while (!s.host.is_round_over()) {
                own.reuse(0);
                if (s.host.try_run(own) == nullptr) co_await s.host.run(own);
            }
            for (int i = 0; i < 3; ++i) calls.spawn(s.note_end(ends, values_of(i)));
            bool is_first = false;
            while (!is_first && ends.size() < 6) {
                if (s.host.is_round_over()) {
                    co_await loop::current().yield();
                    continue;
                }
                own.reuse(0);
                EXPECT_EQ(s.host.try_run(own), nullptr) << "others come first";
                is_first = s.host.try_run(own, call_order::overtaking) != nullptr;
            }
            EXPECT_TRUE(is_first);
            co_await calls.join();
        });
        EXPECT_EQ(ends.size(), 6U);
    });
}

TEST_P(coroutine_host_io, a_cancelled_call_leaves_its_place_to_others) {
    run([]() -> task<void> {
        subject s(std::string(burn) + "burn(0.002) return a", {.slice = 1ms});
        std::vector<call_end> ends;
        co_await with_scope([&](scope& calls) -> task<> {
            for (int round = 0; round < 20; ++round) {
                scope ended;
                for (int i = 0; i < 3; ++i) ended.spawn(s.note_end(ends));
                for (int i = 0; i < round % 7; ++i) co_await loop::current().yield();
                ended.cancel();
                calls.spawn(s.note_end(ends));
                co_await ended.join();
            }
            co_await calls.join();
        });
        EXPECT_EQ(ends.size(), 80U);
    });
}

TEST_P(coroutine_host_io, keeps_functions) {
    run([]() -> task<void> {
        subject s(
            "ticked = 0 "
            "keep('x', function() ticked = ticked + 1 if ticked == 2 then wait() end end)");
        co_await s.run();
        EXPECT_TRUE(bool(s.shop.kept));
        reused_call one(s.host);
        one.has_text = false;
        one.reuse(s.shop.kept, "later");
        EXPECT_NE(s.host.try_run(one), nullptr);
        one.reuse(s.shop.kept, "later");
        EXPECT_EQ(s.host.try_run(one), nullptr);
        s.shop.gate.set();
        co_await s.host.run(one);
        EXPECT_EQ(*s.host.global("ticked").number(), 2);
        s.shop.kept = kept_function();
        subject wrong("keep(function() end, 1)");
        EXPECT_EQ(co_await wrong.text_of(),
                  "script_failed: host.lua:2: keep() takes a text and a function");
    });
}

TEST_P(coroutine_host_io, reads_globals_and_parameters) {
    run([]() -> task<void> {
        subject s(
            "function handle(a, ...) end function one(a) end count = 7 list = {1, {a = 'x'}} f = "
            "one",
            {{.name = "one"}, {.name = "none"}});
        EXPECT_EQ(s.fault, "");
        EXPECT_EQ(s.host.parameters(0), -1);
        EXPECT_EQ(s.host.parameters(1), 1);
        EXPECT_FALSE(s.host.defines(2));
        EXPECT_EQ(*s.host.global("count").number(), 7);
        EXPECT_TRUE(s.host.global("f").is_nil());
        const table all = co_await s.host.globals();
        EXPECT_EQ(all.fields.size(), 2U);
        EXPECT_EQ(*all["list"].fields()->elements.at(1).fields()->operator[]("a").text(), "x");
    });
}

TEST_P(coroutine_host_io, has_modules_and_the_time) {
    run([]() -> task<void> {
        subject s(
            "assert(require('cjson') == cjson and require('table').concat == table.concat) "
            "assert(os.time() > 1e9 and #os.date('%Y') == 4 and os.difftime(2, 1) == 1) "
            "assert(os.execute == nil and os.exit == nil and os.getenv == nil) "
            "assert(not pcall(function() os.time = 1 end)) local none = require('io')");
        EXPECT_THAT(co_await s.text_of(),
                    StartsWith("script_failed: host.lua:2: there is no such module: scripts have"));
    });
}

TEST_P(coroutine_host_io, has_tables_with_several_names) {
    run([]() -> task<void> {
        host_options options;
        options.callbacks = {{.name = "handle", .is_required = true, .results = 1}};
        options.libraries = std::vector<library>(3);
        options.libraries[0].name = "self";
        options.libraries[0].constants = {{"name", "Ann"}, {"port", 7.0}};
        options.libraries[0].other_names = {"me"};
        options.libraries[1].name = "self.inner";
        options.libraries[1].functions = std::span(rows).subspan(1, 1);
        options.libraries[2].name = "self";
        options.libraries[2].functions = std::span(rows).subspan(2, 1);
        coroutine_host host(std::move(options));
        EXPECT_TRUE(host.load("function handle() local ok = pcall(function() me.inner.x = 1 end) "
                              "return me.name .. self.port .. self.inner.encode({1}) .. me.count() "
                              ".. tostring(self == me) .. tostring(ok) end",
                              "host.lua")
                        .has_value());
        reused_call one(host);
        one.has_text = false;
        const call_end* const end = host.try_run(one);
        if (end == nullptr || end->results.empty()) throw std::runtime_error("no end");
        EXPECT_EQ(*end->results[0].text(), "Ann7[1]1truefalse");
        co_return;
    });
}

TEST_P(coroutine_host_io, passes_values_both_ways) {
    run([]() -> task<void> {
        subject s(R"(
            local t = echo({1, "two", {three = 3}, name = a, flag = true})
            assert(#t == 3 and t[1] == 1 and t[2] == "two" and t[3].three == 3)
            assert(t.name == "Ann" and t.flag == true and echo(nil) == nil and echo(false) == false)
            local sum, text = add("1", nil, 5)
            assert(sum == 101 and text == "5!" and add(1, 2, "") == 3)
            assert(b.list[2] == 0.5 and b.more == nil)
            local word, number, more = wait()
            assert(word == "passed" and number == 7 and more == nil)
            return {a, last = b.list}, "x\0y", "dropped")");
        table given;
        table inner;
        inner.elements = values_of(1, 0.5);
        given.fields.emplace_back("list", std::move(inner));
        s.shop.gate.set();
        const call_end end = co_await s.run(values_of("Ann", std::move(given)));
        EXPECT_EQ(end.text, "");
        EXPECT_EQ(end.what, call_end::kind::returned);
        EXPECT_EQ(end.results.size(), 2U);
        const table& first = *end.results.at(0).fields();
        EXPECT_EQ(*first.elements.at(0).text(), "Ann");
        EXPECT_EQ(*first["last"].fields()->elements.at(1).number(), 0.5);
        EXPECT_TRUE(first["none"].is_nil());
        EXPECT_EQ(*end.results.at(1).text(), std::string("x\0y", 3));
    });
}

TEST_P(coroutine_host_io, passes_as_many_values_as_fit) {
    run([]() -> task<void> {
        const callback all{.name = "all", .results = max_values};
        subject s(
            "function handle() end function all(...) "
            "assert(select('#', ...) == 16 and select(16, ...) == 16) return count() end",
            {all});
        values given;
        for (std::size_t i = 1; i <= max_values; ++i) given.emplace_back(i);
        const call_end end = co_await s.run(std::move(given), 1);
        EXPECT_EQ(end.text, "");
        EXPECT_EQ(end.results.size(), max_values);
        EXPECT_EQ(*end.results.at(max_values - 1).number(), 16);
    });
}

TEST_P(coroutine_host_io, refuses_values_that_cannot_be_copied) {
    run([]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"print_", "a function"},
            {"coroutine.create(print_)", "a thread"},
            {"{{print_}}", "a function"},
            {"{[0.5] = 1}", "a table with a key that is no text"},
            {"{1, [3] = 1}", "a table with a key that is no text"},
            {"nested(17)", "tables within each other, more than 16"},
            {"{('x'):rep(2^19), ('x'):rep(2^19)}", "a table of more than 1 MiB"},
            {"many(2^16 + 1)", "a table of more than 1 MiB"},
        };
        const std::string helpers = R"(
            local function print_() end
            local function nested(n) local t = {} for i = 2, n do t = {t} end return t end
            local function many(n) local t = {} for i = 1, n do t[i] = i end return t end
            )";
        for (const auto& [expression, text] : all) {
            subject s(helpers + "return " + expression);
            EXPECT_THAT(co_await s.text_of(),
                        StartsWith("script_failed: handle() returned " + text))
                << expression;
            subject given(helpers + "local copy = echo(" + expression + ")");
            EXPECT_THAT(co_await given.text_of(), StartsWith("script_failed: host.lua:6: " + text));
        }
        subject s(helpers + "echo(nested(16)) echo(many(2^16)) return 'fits'");
        EXPECT_EQ(co_await s.text_of(), "fits");
    });
}

TEST_P(coroutine_host_io, runs_any_number_of_waits_at_a_time) {
    run([]() -> task<void> {
        subject s("local word = wait() sleep(1) return word .. a");
        std::vector<call_end> ends;
        co_await with_scope([&](scope& calls) -> task<> {
            for (int i = 0; i < 300; ++i) calls.spawn(s.note_end(ends, values_of(i)));
            while (s.shop.waiting < 300) co_await loop::current().yield();
            EXPECT_TRUE(ends.empty());
            s.shop.gate.set();
            co_await calls.join();
        });
        EXPECT_EQ(ends.size(), 300U);
        for (const call_end& each : ends)
            EXPECT_THAT(*each.results.at(0).text(), StartsWith("passed"));
    });
}

TEST_P(coroutine_host_io, lets_a_failed_function_raise_return_or_end) {
    run([]() -> task<void> {
        for (const std::string when : {"now", "later"}) {
            subject raised("return select(2, pcall(function()\ntry('" + when + "')\nend))");
            EXPECT_EQ(co_await raised.text_of(), "host.lua:3: " + when);
            subject direct("return select(2, pcall(try, '" + when + "'))");
            EXPECT_EQ(co_await direct.text_of(), when);
            subject uncaught("\ntry('" + when + "')");
            EXPECT_EQ(co_await uncaught.text_of(), "script_failed: host.lua:3: " + when);
            subject returned("local none, why = ask('" + when + "') return tostring(none) .. why");
            EXPECT_EQ(co_await returned.text_of(), "nil" + when);
            subject ended("pcall(leave, '" + when + "') tick()");
            EXPECT_EQ(co_await ended.text_of(), "gone");
            EXPECT_EQ(ended.shop.ticks, 0U);
        }
        subject checked("return select(2, pcall(function()\ncheck('now')\nend))");
        EXPECT_EQ(co_await checked.text_of(), "host.lua:3: now");
    });
}

TEST_P(coroutine_host_io, checks_arguments_and_places) {
    run([]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"add(1, 2)", "host.lua:2: add() takes two numbers and a text"},
            {"add('x', 2, '')", "host.lua:2: add() takes two numbers and a text"},
            {"add(1, {}, '')", "host.lua:2: add() takes two numbers and a text"},
            {"choose(1, {})", "host.lua:2: choose() takes a flag and a table"},
            {"choose(true, 'x')", "host.lua:2: choose() takes a flag and a table"},
            {"try()", "host.lua:2: try() takes a text"},
            {"sleep(-1)", "host.lua:2: sleep() takes milliseconds, of a day at most"},
            {"sleep(86400001)", "host.lua:2: sleep() takes milliseconds, of a day at most"},
            {"sleep(0 / 0)", "host.lua:2: sleep() takes milliseconds, of a day at most"},
            {"coroutine.wrap(tick)()", "functions that wait cannot be called within a coroutine"},
            {"coroutine.wrap(function() try('a') end)()",
             "host.lua:2: functions that wait cannot be called within a coroutine of the script's"},
            {"table.sort({2, 1}, function() tick() end)", "host.lua:2: attempt to yield across"},
            {"coroutine.yield()", "handle() may not yield; it waits by sleep()"},
            {"tools.huge = 1", "host.lua:2: Attempt to modify a readonly table"},
            {"error('a\\nb', 0)", "host.lua:2: a b"},
            {"error({})", "host.lua:2: an error that is a table"},
            {"error(('x'):rep(5000), 0)", "host.lua:2: xxx"},
            {"local function f() return 1 + f() end f()", "stack overflow"},
        };
        for (const auto& [statement, text] : all) {
            subject s(statement);
            const std::string got = co_await s.text_of();
            EXPECT_THAT(got, StartsWith("script_failed: ")) << statement;
            EXPECT_THAT(got, HasSubstr(text)) << statement;
            EXPECT_LE(got.size(), std::string_view("script_failed: ").size() + host_limits().error);
        }
        subject s("return echo(coroutine.wrap(function() return echo('nested') end)())");
        EXPECT_EQ(co_await s.text_of(), "nested") << "a function that does not wait";
    });
}

TEST_P(coroutine_host_io, cancels_a_call_at_its_wait) {
    run([]() -> task<void> {
        subject s("tick() pcall(wait) tick() wait() tick()");
        std::vector<call_end> ends;
        co_await with_scope([&](scope& calls) -> task<> {
            for (int i = 0; i < 3; ++i) calls.spawn(s.note_end(ends));
            while (s.shop.waiting < 3) co_await loop::current().yield();
            calls.cancel();
            co_await calls.join();
        });
        EXPECT_EQ(s.shop.ticks, 3U);
        EXPECT_EQ(s.shop.freed, 3U);
        EXPECT_EQ(ends.size(), 3U);
        for (const call_end& each : ends) EXPECT_EQ(each.what, call_end::kind::gone);
    });
}

TEST_P(coroutine_host_io, ends_while_calls_have_waited) {
    run([]() -> task<void> {
        auto s = std::make_unique<subject>("wait()");
        std::vector<call_end> ends;
        scope calls;
        for (int i = 0; i < 50; ++i) calls.spawn(s->note_end(ends));
        while (s->shop.waiting < 50) co_await loop::current().yield();
        calls.cancel();
        co_await calls.join();
        EXPECT_EQ(ends.size(), 50U);
        EXPECT_EQ(s->shop.freed, 50U);
        s.reset();
    });
}

TEST_P(coroutine_host_io, cuts_computing_into_slices) {
    run([]() -> task<void> {
        subject s("if a == 'fast' then tick() return 'quick' end while true do end",
                  {.run = std::chrono::milliseconds(50)});
        std::vector<call_end> ends;
        std::size_t turns = 0;
        co_await with_scope([&](scope& calls) -> task<> {
            calls.spawn(s.note_end(ends));
            calls.spawn(s.note_end(ends, values_of("fast")));
            for (; ends.empty(); ++turns) {
                EXPECT_EQ(s.shop.ticks, 0U) << "one runs at a time";
                co_await loop::current().yield();
            }
            co_await calls.join();
        });
        EXPECT_GT(turns, 3U);
        EXPECT_EQ(ends.at(0).reason, script_too_long);
        EXPECT_THAT(ends.at(0).text, EndsWith("it computes for too long without a wait"));
        EXPECT_EQ(ends.at(1).what, call_end::kind::returned);
    });
}

TEST_P(coroutine_host_io, stops_a_computing_call_whose_source_is_requested) {
    run([]() -> task<void> {
        subject s("tick() while true do pcall(function() while true do end end) end");
        std::vector<call_end> ends;
        co_await with_scope([&](scope& calls) -> task<> {
            calls.spawn(s.note_end(ends));
            while (s.shop.ticks == 0) co_await loop::current().yield();
            calls.cancel();
            co_await calls.join();
        });
        EXPECT_EQ(ends.at(0).what, call_end::kind::gone);
        subject after("return 'fine'");
        EXPECT_EQ(co_await after.text_of(), "fine");
    });
}

TEST_P(coroutine_host_io, gives_other_calls_a_chance_between_functions_that_need_no_wait) {
    run([]() -> task<void> {
        subject s(R"(
            shared.calls = shared.calls + 1
            if a == 'second' then return 'second' end
            for i = 1, 1e8 do
                tick()
                if shared.calls == 2 then return 'first' end
            end
            return 'alone' end
            shared = {calls = 0}
            function unused())");
        std::vector<call_end> ends;
        co_await with_scope([&](scope& calls) -> task<> {
            calls.spawn(s.note_end(ends));
            calls.spawn(s.note_end(ends, values_of("second")));
            co_await calls.join();
        });
        EXPECT_EQ(*ends.at(0).results.at(0).text(), "second");
        EXPECT_EQ(*ends.at(1).results.at(0).text(), "first");
    });
}

TEST_P(coroutine_host_io, begins_the_budget_anew_at_each_wait) {
    run([]() -> task<void> {
        const host_limits limits{.run = std::chrono::milliseconds(60)};
        const std::string helper(burn);
        subject s(helper + "for i = 1, 10 do burn(0.015) sleep(1) end return 'fine'", limits);
        EXPECT_EQ(co_await s.text_of(), "fine");
        for (const std::string none : {"echo(i)", "tick()", "sleep(0)", "ask('now')", "soon()"}) {
            subject late(helper + "for i = 1, 10 do burn(0.015) " + none + " end return 'fine'",
                         limits);
            EXPECT_THAT(co_await late.text_of(), StartsWith("script_too_long: host.lua:")) << none;
        }
    });
}

TEST_P(coroutine_host_io, ends_a_loop_over_functions_that_wait_for_nothing) {
    if (eddy::testing::is_sanitized) GTEST_SKIP() << "what is done at once takes long there";
    run([]() -> task<void> {
        for (const std::string none : {"tick()", "sleep(0)", "ask('now')", "soon()"}) {
            subject s("if a == 'quick' then tick() return 'quick' end while true do pcall(soon) " +
                          none + " end",
                      {.run = std::chrono::milliseconds(20)});
            std::vector<call_end> ends;
            std::size_t quick = 0;
            co_await with_scope([&](scope& calls) -> task<> {
                calls.spawn(s.note_end(ends));
                for (; ends.empty(); ++quick)
                    EXPECT_EQ(co_await s.text_of(values_of("quick")), "quick");
                co_await calls.join();
            });
            EXPECT_GT(quick, 3U) << "others go on";
            EXPECT_EQ(ends.at(0).reason, script_too_long);
            EXPECT_THAT(ends.at(0).text, StartsWith("host.lua:2: it computes for too long"));
        }
    });
}

TEST_P(coroutine_host_io, traces_a_failure_to_its_callback) {
    run([]() -> task<void> {
        subject s(R"(
            local function inner(what)
                if what == "loop" then while true do end end
                if what == "long" then error(("x"):rep(5000)) end
                if what == "deep" then inner("deep") end
                if what == "sort" then
                    table.sort({2, 1}, function() error("within") end)
                end
                error("spoilt")
            end
            local function outer() inner(a) end
            outer())",
                  {.run = std::chrono::milliseconds(20)});
        constexpr std::string_view calls = "; called from host.lua:12, host.lua:13";
        EXPECT_EQ(co_await s.text_of(values_of("usual")),
                  "script_failed: host.lua:10: spoilt" + std::string(calls));
        EXPECT_EQ(co_await s.text_of(values_of("loop")),
                  "script_too_long: host.lua:4: it computes for too long without a wait" +
                      std::string(calls));
        EXPECT_EQ(co_await s.text_of(values_of("sort")),
                  "script_failed: host.lua:8: within" + std::string(calls));
        const std::string cut = co_await s.text_of(values_of("long"));
        EXPECT_THAT(cut, StartsWith("script_failed: host.lua:5: xxx"));
        EXPECT_THAT(cut, EndsWith("xxx" + std::string(calls)));
        EXPECT_EQ(cut.size(), std::string_view("script_failed: ").size() + host_limits().error);
        std::string levels = "; called from host.lua:6";
        for (std::size_t i = 1; i < lua::max_traced_calls; ++i) levels += ", host.lua:6";
        EXPECT_THAT(co_await s.text_of(values_of("deep")),
                    ::testing::AllOf(HasSubstr("stack overflow"), EndsWith(levels + ", ...")));
    });
}

TEST_P(coroutine_host_io, fails_the_call_that_uses_up_the_memory) {
    run([]() -> task<void> {
        subject s(R"(
            if a == 'small' then sleep(1) return 'fine' end
            if a == 'push' then return huge(5e6) end
            if a == 'later' then return tools.huge(5e6) end
            if a == 'fits' then return tools.huge(1e6) end
            local t = {}
            while true do t[#t + 1] = ('x'):rep(1e5) .. #t end)",
                  {.bytes = std::size_t{4} << 20});
        for (int i = 0; i < 5; ++i) {
            for (const std::string_view how : {"full", "push", "later"})
                EXPECT_THAT(co_await s.text_of(values_of(how)), EndsWith("not enough memory"))
                    << how;
            EXPECT_EQ(co_await s.text_of(values_of("small")), "fine");
            EXPECT_EQ((co_await s.text_of(values_of("fits"))).size(), 1'000'000U);
        }
        EXPECT_LE(s.host.used_bytes(), std::size_t{4} << 20);
        EXPECT_EQ(co_await s.text_of(values_of(std::string(5'000'000, 'x'))),
                  "script_failed: not enough memory for another call");
    });
}

TEST_P(coroutine_host_io, reports_that_the_process_has_no_memory) {
    run([]() -> task<void> {
        for (const std::string name : {"throw_in_wait", "throw_later"}) {
            subject s("pcall(" + name + ") tick()");
            const call_end end = co_await s.run();
            EXPECT_EQ(end.what, call_end::kind::failed);
            EXPECT_EQ(end.reason, no_memory);
            EXPECT_EQ(s.shop.ticks, 0U);
        }
        subject s("return select(2, pcall(throw))");
        EXPECT_EQ(co_await s.text_of(), "not enough memory");
    });
}

TEST_P(coroutine_host_io, loads_a_script_with_its_callbacks) {
    run([]() -> task<void> {
        const std::vector<std::pair<std::string, std::string>> all = {
            {"\nfunction handle( end", "host.lua:2: "},
            {"\n\nerror('no')", "host.lua:3: no"},
            {"x = 1", "host.lua: it defines no function handle(a, b)"},
            {"handle = 1", "host.lua: it defines no function handle(a, b)"},
            {"function handle() end other = 1", "host.lua: its other is no function"},
            {"function handle() end\nwhile true do end", "host.lua:2: it computes for too long"},
            {"function handle() end\ntick()",
             "host.lua:2: functions that wait can be called within handle(), other() and more() "
             "alone"},
            {"function handle() end\ntry('a')", "host.lua:2: functions that wait can be called"},
            {"function handle() end\ncoroutine.yield()", "the file's own statements may not yield"},
            {"\27Lua", "host.lua"},
        };
        const std::vector<callback> others = {{.name = "other", .results = 1}, {.name = "more"}};
        const host_limits limits{.run = std::chrono::milliseconds(100)};
        for (const auto& [text, why] : all) {
            const subject s(text, others, limits);
            EXPECT_THAT(s.fault, HasSubstr(why)) << text;
        }
        subject s("function handle() end function other() return echo(known) end known = echo('k')",
                  others);
        EXPECT_EQ(s.fault, "");
        EXPECT_TRUE(s.host.defines(1));
        EXPECT_FALSE(s.host.defines(2));
        const call_end end = co_await s.run({}, 1);
        EXPECT_EQ(*end.results.at(0).text(), "k");
    });
}

TEST_P(coroutine_host_io, compiles_in_slices) {
    run([]() -> task<void> {
        // Some milliseconds for the compiler, and nothing to run.
        std::string text = "function handle() end\n";
        for (int i = 0; i < 20'000; ++i)
            text += "function f" + std::to_string(i) +
                    "(a, b) return a[b] or {x = #b + 1, y = a} end\n";
        host_options options;
        options.callbacks = {{.name = "handle", .is_required = true}};
        options.limits.slice = std::chrono::microseconds(200);
        coroutine_host host(std::move(options));
        std::size_t turns = 0;
        bool is_over = false;
        co_await with_scope([&](scope& both) -> task<> {
            both.spawn([](std::size_t& count, const bool& ends) -> task<void> {
                while (!ends) {
                    ++count;
                    co_await loop::current().yield();
                }
            }(turns, is_over));
            const auto loaded = co_await host.load_in_slices(std::move(text), "large.lua");
            EXPECT_TRUE(loaded) << loaded.error();
            is_over = true;
            co_await both.join();
        });
        EXPECT_GT(turns, 10U);
        EXPECT_TRUE(host.defines(0));
    });
}

task<void> note_steps(subject& s, std::uint64_t seed, std::vector<std::string>& into) {
    const std::string got = co_await s.text_of(values_of(static_cast<double>(seed % 1000)));
    into.push_back(std::to_string(seed % 1000) + " " + got);
}

task<std::vector<std::string>> mixed_run(std::uint64_t seed, std::size_t& gone) {
    subject s(R"(
        local sum, state = 0, a
        for i = 1, 30 do
            state = (state * 17 + 3) % 1009
            if state % 4 == 0 then sleep(state % 7)
            elseif state % 4 == 1 then tick()
            elseif state % 4 == 2 then pcall(try, "later")
            else ask("now") end
            sum = sum + state
        end
        local expected = 0
        state = a
        for i = 1, 30 do state = (state * 17 + 3) % 1009 expected = expected + state end
        return sum == expected and "right" or "wrong")");
    random_generator dice(seed);
    std::vector<std::string> notes;
    co_await with_scope([&](scope& kept) -> task<> {
        scope cut;
        for (int i = 0; i < 80; ++i) {
            scope& into = dice.chance(0.3) ? cut : kept;
            into.spawn(note_steps(s, dice.below(1000), notes));
            if (dice.chance(0.2)) must(co_await loop::current().sleep_for(1ms));
        }
        cut.cancel();
        co_await cut.join();
        co_await kept.join();
    });
    for (const std::string& each : notes) {
        EXPECT_THAT(each, ::testing::AnyOf(EndsWith("right"), EndsWith("gone")));
        if (each.ends_with("gone")) ++gone;
    }
    EXPECT_EQ(notes.size(), 80U);
    co_return notes;
}

TEST_P(coroutine_host_io, keeps_calls_apart_in_any_order) {
    run([this]() -> task<void> {
        std::size_t gone = 0;
        for (int i = 0; i < 10; ++i) {
            const std::uint64_t seed = random().below(1'000'000);
            const std::vector<std::string> first = co_await mixed_run(seed, gone);
            EXPECT_EQ(first.size(), 80U) << seed;
        }
        EXPECT_GT(gone, 0U);
    });
}

TEST(library_rows, of_time_are_documented) { testing::expect_documented(time_library()); }

}  // namespace
}  // namespace eddy::script
