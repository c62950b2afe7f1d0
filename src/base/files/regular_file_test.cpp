// Files opened for users; kinds that are refused without a wait.
#include "base/files/regular_file.hpp"

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace eddy {
namespace {

class regular_file : public ::testing::Test {
protected:
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_.file(name), std::ios::binary) << text;
        return folder_.file(name);
    }
    std::string fifo() const {
        const std::string path = folder_.file("fifo");
        EXPECT_TRUE(::mkfifo(path.c_str(), 0600) == 0 || errno == EEXIST);
        return path;
    }
    static std::string refusal(const std::string& path, int flags) {
        const auto opened = open_regular(path.c_str(), flags);
        return opened ? "it was opened" : opened.error().message();
    }

    testing::temporary_folder folder_;
};

TEST_F(regular_file, is_made_written_and_read) {
    const std::string path = folder_.file("new");
    {
        const auto file = open_regular(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ASSERT_TRUE(file);
        ASSERT_EQ(::write(file->get(), "text", 4), 4);
        EXPECT_EQ(::fcntl(file->get(), F_GETFL) & O_NONBLOCK, 0) << "io_uring is to wait for it";
        EXPECT_NE(::fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_EQ(read_regular(path, 4).value(), "text");
    ASSERT_EQ(::symlink(path.c_str(), folder_.file("link").c_str()), 0);
    EXPECT_EQ(read_regular(folder_.file("link"), 100).value(), "text");
    EXPECT_EQ(read_regular(folder_.file("none"), 100).error(), errno_code(ENOENT));
}

TEST_F(regular_file, is_the_only_kind_that_is_opened) {
    for (const int flags : {O_RDONLY, O_WRONLY | O_CREAT, O_RDWR, O_WRONLY | O_APPEND | O_TRUNC}) {
        SCOPED_TRACE(flags);
        EXPECT_EQ(refusal(fifo(), flags), "it is a FIFO, and a regular file is needed");
        EXPECT_EQ(refusal("/dev/zero", flags),
                  "it is a character device, and a regular file is needed");
        EXPECT_EQ(refusal(folder_.path(), flags), "Is a directory");
    }
    const int reader = ::open(fifo().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_EQ(refusal(fifo(), O_WRONLY), "it is a FIFO, and a regular file is needed")
        << "one that is read, too";
    ::close(reader);

    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, folder_.file("socket").c_str(), sizeof(address.sun_path) - 1);
    const unique_fd bound(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(refusal(folder_.file("socket"), O_RDONLY),
              "it is a socket, and a regular file is needed");
}

TEST_F(regular_file, may_be_the_null_device) {
    EXPECT_EQ(read_regular("/dev/null", 10).value(), "");
    EXPECT_TRUE(open_regular("/dev/null", O_WRONLY | O_APPEND));
    EXPECT_TRUE(open_regular("/dev/full", O_WRONLY | O_APPEND));
    EXPECT_FALSE(open_regular("/dev/full", O_RDONLY)) << "it has no end";
}

TEST_F(regular_file, is_read_up_to_a_limit) {
    const std::string path = write("large", std::string(200'000, 'x'));
    EXPECT_EQ(read_regular(path, 200'000).value().size(), 200'000U);
    EXPECT_EQ(read_regular(path, 199'999).error(), errc::limit_reached);
    EXPECT_EQ(read_regular(write("empty", ""), 0).value(), "");
}

}  // namespace
}  // namespace eddy
