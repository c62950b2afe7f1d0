// Tests of files that options name as scripts: reading and refusals.
#include "runtime/scripting/script_options.hpp"

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <string_view>

namespace eddy::runtime {
namespace {

using namespace eddy::testing;
using ::testing::StartsWith;

constexpr std::size_t limit = std::size_t{2} << 20;

class script_files : public on_io_backend {
protected:
    std::string write(const std::string& name, std::string_view text) {
        std::ofstream(folder_.file(name)) << text;
        return folder_.file(name);
    }
    /// The refusal, which is the same in both forms.
    task<std::string> refusal_of(std::string path) {
        const auto now = read_script("--lua", path, limit);
        const auto later = co_await read_script_in_background("--lua", path, limit);
        if (now || later) co_return "it was read";
        EXPECT_EQ(now.error().message, later.error().message);
        EXPECT_EQ(now.error().status, 400);
        co_return now.error().message;
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, script_files,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(script_files, have_a_text_and_a_name) {
    run([this]() -> task<void> {
        const std::string path = write("a.lua", "return 1");
        const auto now = read_script("--lua", path, limit);
        EXPECT_EQ(now->text, "return 1");
        EXPECT_EQ(now->name, "a.lua");
        const auto later = co_await read_script_in_background("--lua", path, limit);
        EXPECT_EQ(later->text, "return 1");
        EXPECT_EQ(later->name, "a.lua");
        const auto largest = read_script("--lua", write("b", std::string(limit, ' ')), limit);
        EXPECT_EQ(largest->text.size(), limit);
    });
}

TEST_P(script_files, are_refused_by_option_and_path) {
    run([this]() -> task<void> {
        const std::string none = folder_.file("none");
        EXPECT_THAT(co_await refusal_of(none),
                    "--lua: " + none + " cannot be read: " + errno_code(ENOENT).message());
        const std::string large = write("large", std::string(limit + 1, ' '));
        EXPECT_EQ(co_await refusal_of(large), "--lua: " + large + " is larger than 2 MiB");
        const std::string pipe = folder_.file("pipe");
        EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
        EXPECT_THAT(co_await refusal_of(pipe),
                    StartsWith("--lua: " + pipe + " cannot be read: it is a FIFO"));
    });
}

}  // namespace
}  // namespace eddy::runtime
