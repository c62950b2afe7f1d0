// Tests of --format: its forms, keys by other names, and what it refuses.
#include "cli/text/row_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace eddy::cli {
namespace {

using ::testing::HasSubstr;

constexpr std::array<std::string_view, 4> keys = {"name", "port", "uptime_s", "reason"};

const json& rows() {
    static const json all = {{{"name", "db"}, {"port", 6379}}, {{"name", "a"}, {"port", nullptr}}};
    return all;
}

std::string shown(std::string_view format) {
    const auto read = row_format::parse(format, keys);
    return read ? read->all(rows(), false) : read.error();
}

TEST(row_format, texts_with_keys) {
    EXPECT_EQ(shown("{name} {port}"), "db 6379\na \n");
    EXPECT_EQ(shown("<{name}\\t{reason}>"), "<db\t>\n<a\t>\n");
    EXPECT_EQ(shown("{{.Name}}={{ .Port }}"), "db=6379\na=\n");
    EXPECT_EQ(shown("{{.Names}}"), "db\na\n");
    EXPECT_EQ(shown("x"), "x\nx\n");
    EXPECT_EQ(shown("{name"), "{name\n{name\n");
}

TEST(row_format, tables) {
    EXPECT_EQ(shown("name,port"), "NAME  PORT\ndb    6379\na     -\n");
    EXPECT_EQ(shown("table {{.Name}}\\t{{.Port}}"), "NAME  PORT\ndb    6379\na     -\n");
    EXPECT_EQ(shown("table {name}\t{uptime_s}"), "NAME  UPTIME S\ndb    -\na     -\n");
}

TEST(row_format, json_is_a_line_each) {
    EXPECT_EQ(shown("json"), "{\"name\":\"db\",\"port\":6379}\n{\"name\":\"a\",\"port\":null}\n");
}

TEST(row_format, an_unknown_key_is_named) {
    EXPECT_THAT(shown("{nmae}"), HasSubstr("unknown {nmae}; there are name, port, reason"));
    EXPECT_THAT(shown("{{.Mounts}}"), HasSubstr("unknown {Mounts}"));
}

TEST(row_format, values_cannot_drive_a_terminal) {
    const auto read = row_format::parse("{name}", keys);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->line({{"name", "\x1b[2J"}}), "?[2J\n");
}

}  // namespace
}  // namespace eddy::cli
