// Tests of options bound to members: kinds, refusals, the table and live changes.
#include "runtime/options/bound_options.hpp"

#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;

enum class colour : std::uint8_t { red, green, blue };

struct inner {
    std::string name;
    struct {
        std::uint64_t most = 0;
    } limits;
};

struct sample {
    bool is_on = false;
    std::uint16_t count = 0;
    std::size_t bytes = 0;
    duration wait{};
    duration pause{};
    std::int64_t deadline_us = 0;
    std::string path;
    colour paint = colour::green;
    inner within;
    std::vector<std::string> list;
    int apart = 0;
};

outcome<std::vector<std::string>> read_list(const settings& chosen, const sample& so_far) {
    if (chosen.text("list") == "bad") return refuse(400, "--list is bad");
    return std::vector<std::string>{chosen.text("list"), so_far.path};
}

using row = bound_option<sample>;

bound_options<sample> sample_rows() {
    return {
        row::bound(&sample::is_on, {.name = "on", .kind = option_kind::flag, .live = true}),
        row::bound(
            &sample::count,
            {.name = "count", .kind = option_kind::integer, .minimum = 1, .maximum = UINT16_MAX}),
        row::bound(&sample::bytes, {.name = "bytes", .kind = option_kind::size}),
        row::bound(&sample::wait,
                   {.name = "wait", .kind = option_kind::duration, .default_value = "2s"}),
        row::none_at_zero(&sample::pause,
                          {.name = "pause", .kind = option_kind::duration, .live = true}),
        row::in_microseconds(&sample::deadline_us,
                             {.name = "deadline", .kind = option_kind::duration}),
        row::whole_path(&sample::path, {.name = "path", .is_path = true}),
        row::choice(&sample::paint, {.name = "paint", .kind = option_kind::choice, .live = true},
                    {{"red", colour::red}, {"blue", colour::blue}}),
        row::bound(nested(&sample::within, &inner::name), {.name = "name", .default_value = "x"}),
        row::read_by(&sample::list, {.name = "list"}, read_list),
        row::copied(&sample::apart, {.name = "apart", .live = true}),
        row::unbound({.name = "other"}),
    };
}

outcome<sample> read_sample(const json& given) {
    auto chosen = settings::parse(table_of(sample_rows()), given);
    if (!chosen) return std::unexpected(chosen.error());
    sample read;
    if (auto bound = read_bound(sample_rows(), *chosen, read); !bound)
        return std::unexpected(bound.error());
    return read;
}

std::string refusal(const json& given) {
    const auto read = read_sample(given);
    return read ? "" : read.error().message;
}

TEST(bound_options, each_kind_is_read_into_its_member) {
    const sample read = must_do(read_sample({{"on", true},
                                             {"count", 65535},
                                             {"bytes", "2k"},
                                             {"wait", "5ms"},
                                             {"pause", "1s"},
                                             {"deadline", "2ms"},
                                             {"path", "/a"},
                                             {"paint", "blue"},
                                             {"name", "y"},
                                             {"list", "l"}}));
    EXPECT_TRUE(read.is_on);
    EXPECT_EQ(read.count, 65535);
    EXPECT_EQ(read.bytes, 2048U);
    EXPECT_EQ(read.wait, 5ms);
    EXPECT_EQ(read.pause, 1s);
    EXPECT_EQ(read.deadline_us, 2000);
    EXPECT_EQ(read.path, "/a");
    EXPECT_EQ(read.paint, colour::blue);
    EXPECT_EQ(read.within.name, "y");
    EXPECT_EQ(read.list, (std::vector<std::string>{"l", "/a"}));
}

TEST(bound_options, options_that_are_not_given_have_their_default) {
    const sample read = must_do(read_sample(json::object()));
    EXPECT_FALSE(read.is_on);
    EXPECT_EQ(read.wait, 2s);
    EXPECT_EQ(read.pause, duration::max());
    EXPECT_EQ(read.path, "");
    EXPECT_EQ(read.paint, colour::green);
    EXPECT_EQ(read.within.name, "x");
}

TEST(bound_options, refusals_name_the_option) {
    EXPECT_EQ(refusal({{"path", "a"}}), "--path cannot be \"a\": write the whole path, from /");
    EXPECT_EQ(refusal({{"list", "bad"}}), "--list is bad");
    EXPECT_EQ(refusal({{"paint", "green"}}), "--paint cannot be \"green\"; it may be red or blue");
    EXPECT_EQ(refusal({{"count", 65536}}), "--count cannot be 65536; it must be from 1 to 65535");
}

TEST(bound_options, the_table_has_the_rows_in_their_order) {
    const std::vector<option> table = table_of(joined({sample_rows(), sample_rows()}));
    ASSERT_EQ(table.size(), 2 * sample_rows().size());
    EXPECT_EQ(table.front().name, "on");
    EXPECT_EQ(table.back().name, "other");
    EXPECT_EQ(table[7].choices, (std::vector<std::string_view>{"red", "blue"}));
}

TEST(bound_options, live_members_are_copied_and_no_others) {
    sample from;
    from.is_on = true;
    from.count = 7;
    from.paint = colour::red;
    from.within.name = "new";
    from.apart = 9;
    sample to;
    copy_live(sample_rows(), from, to);
    EXPECT_TRUE(to.is_on);
    EXPECT_EQ(to.count, 0);
    EXPECT_EQ(to.paint, colour::red);
    EXPECT_EQ(to.within.name, "");
    EXPECT_EQ(to.apart, 9);
}

TEST(bound_options, members_of_nested_members_are_reached) {
    const auto most =
        nested(&sample::within, nested(&inner::limits, [](auto& of) -> auto& { return of.most; }));
    sample of;
    most(of) = 3;
    EXPECT_EQ(of.within.limits.most, 3U);
}

TEST(bound_options_death_test, faults_of_a_table_are_found_when_it_is_made) {
    EXPECT_DEATH(row::bound(&sample::count, {.name = "n", .kind = option_kind::integer}),
                 "in_range");
    EXPECT_DEATH(row::bound(&sample::count, {.name = "n", .kind = option_kind::duration}),
                 "row.kind");
    EXPECT_DEATH(row::bound(&sample::wait, {.name = "n", .kind = option_kind::integer}),
                 "row.kind");
    const bound_options<sample> rows = {row::unbound({.name = "n", .live = true})};
    sample to;
    EXPECT_DEATH(copy_live(rows, sample(), to), "has_member");
}

}  // namespace
}  // namespace eddy::runtime
