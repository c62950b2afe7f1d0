// Output whose reader stops: the queue at its limit, the line about lost ones, and the end.
#include "daemon/journal/output_writer.hpp"

#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace eddy::daemon {
namespace {

/// A pipe and the lines that are read from it.
class lines_of_pipe {
public:
    lines_of_pipe() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        from_.reset(::fdopen(ends[0], "r"));
        to_.reset(ends[1]);
    }
    int end() const { return to_.get(); }
    void close_reader() { from_.reset(); }
    /// The next line without its newline; waits for it.
    std::string next() {
        char* text = nullptr;
        std::size_t room = 0;
        const ssize_t size = ::getline(&text, &room, from_.get());
        std::string line(text, size > 0 ? static_cast<std::size_t>(size) - 1 : 0);
        std::free(text);
        return line;
    }

private:
    struct closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, closer> from_;
    unique_fd to_;
};

TEST(output_writer, lines_arrive_in_their_order) {
    lines_of_pipe pipe;
    output_writer out(pipe.end(), "the pipe");
    for (int i = 0; i < 100; ++i) out.write(std::to_string(i) + "\n");
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pipe.next(), std::to_string(i));
    EXPECT_TRUE(out.flush());
}

TEST(output_writer, a_reader_that_stops_costs_lines_that_are_counted_and_no_time) {
    lines_of_pipe pipe;
    output_writer out(pipe.end(), "the pipe");
    // More than the pipe, the thread and the queue hold together.
    const std::string filling(1000, 'x');
    std::size_t written = 0;
    for (; out.dropped() < 10; ++written) out.write(filling + "\n");
    EXPECT_LE(written * filling.size(), 3 * output_writer::max_waiting + (std::size_t{1} << 20));

    std::size_t read = 0;
    std::size_t lost = 0;
    while (read + lost < written) {
        const std::string line = pipe.next();
        if (line == filling) {
            ++read;
            continue;
        }
        ASSERT_TRUE(line.ends_with(" lines are lost here: the pipe was not read")) << line;
        const std::size_t number = line.find("daemon  ") + 8;
        std::size_t more = 0;
        std::from_chars(line.data() + number, line.data() + line.size(), more);
        lost += more;
    }
    EXPECT_EQ(read + lost, written);
    EXPECT_GE(lost, 10U);
    EXPECT_EQ(out.dropped(), 0U);

    out.write("after it\n");
    EXPECT_EQ(pipe.next(), "after it");
}

TEST(output_writer, the_queue_is_full_to_the_byte) {
    lines_of_pipe pipe;
    output_writer out(pipe.end(), "the pipe");
    const std::string whole(output_writer::max_waiting - 1, 'x');
    out.write(whole + "yz\n");
    EXPECT_EQ(out.dropped(), 1U);
    out.write(whole + "\n");
    EXPECT_EQ(pipe.next(), whole);
    EXPECT_TRUE(pipe.next().ends_with(" 1 lines are lost here: the pipe was not read"));
}

TEST(output_writer, a_reader_that_has_stopped_does_not_hold_up_the_end) {
    // The thread that stays may still be in its write(2) when the test ends: as with standard
    // output, the descriptor outlives it.
    static lines_of_pipe& pipe = *new lines_of_pipe;
    {
        output_writer out(pipe.end(), "the pipe");
        out.write(std::string(std::size_t{1} << 19, 'x') + "\n");
        EXPECT_FALSE(out.flush());
    }
    // The thread that stayed writes what it had.
    EXPECT_EQ(pipe.next().size(), std::size_t{1} << 19);
}

TEST(output_writer, a_regular_file_has_a_line_at_once) {
    const eddy::testing::temporary_folder folder;
    const std::string path = folder.path() + "/log";
    const unique_fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    output_writer out(file.get(), "the file");
    out.write("one\n");
    out.write("two\n");
    std::ifstream written(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), "one\ntwo\n");
    EXPECT_TRUE(out.flush());
}

TEST(output_writer, a_description_that_is_non_blocking_loses_nothing) {
    lines_of_pipe pipe;
    ASSERT_EQ(::fcntl(pipe.end(), F_SETFL, O_NONBLOCK), 0);
    output_writer out(pipe.end(), "the pipe");
    const std::string large(300'000, 'x');
    out.write(large + "\n");
    EXPECT_EQ(pipe.next(), large);
}

}  // namespace
}  // namespace eddy::daemon
