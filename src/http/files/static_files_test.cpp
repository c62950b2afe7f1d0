// Static files as a client sees them: what is found, what is refused, and bodies of all sizes.
#include <eddy/http/static_files.hpp>

#include "base/test_rounds.hpp"
#include "http/files/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::long_text;
using testing::must;
using testing::unprivileged;

class http_static_files : public testing::with_files {
protected:
    task<response> serve_without_descriptors(request& incoming) {
        rlimit limit{};
        EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
        const rlimit none{0, limit.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
        response made = co_await files_->serve(incoming, incoming.path());
        EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
        co_return made;
    }
};

EDDY_HTTP_ON_EVERY_BACKEND(http_static_files);

TEST_P(http_static_files, a_file_is_served_with_its_type) {
    write("a b/page.HTML", "<p>hello");
    serve();
    const std::string answer = get("/a%20b/page.HTML");
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(body_of(answer), "<p>hello");
    EXPECT_EQ(field_of(answer, "Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(field_of(answer, "Content-Length"), "8");
    EXPECT_EQ(status_of(get("/a%20b/other.html")), 404);
    EXPECT_EQ(status_of(get("/a%20b/page.HTML/")), 404) << "a file is no folder";
}

TEST_P(http_static_files, head_has_the_length_and_no_body) {
    write("a.txt", "hello");
    serve();
    const std::string answer = get("/a.txt", {}, "HEAD");
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_EQ(field_of(answer, "Content-Length"), "5");
    EXPECT_EQ(body_of(answer), "");
}

TEST_P(http_static_files, other_methods_are_refused) {
    write("a.txt", "hello");
    serve();
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
        const std::string answer = get("/a.txt", {}, method);
        EXPECT_EQ(status_of(answer), 405) << method;
        EXPECT_EQ(field_of(answer, "Allow"), "GET, HEAD");
    }
}

TEST_P(http_static_files, a_folder_is_served_by_its_index) {
    write("index.html", "top");
    write("sub/index.html", "below");
    write("empty/x", "");
    serve();
    EXPECT_EQ(body_of(get("/")), "top");
    EXPECT_EQ(body_of(get("/sub/")), "below");
    EXPECT_EQ(body_of(get("//sub//")), "below");
    EXPECT_EQ(status_of(get("/empty/")), 404);
}

TEST_P(http_static_files, a_folder_without_its_slash_redirects_on_this_host) {
    write("sub folder/a:b/index.html", "below");
    write("evil.example/index.html", "mine");
    serve();
    const std::string answer = get("/sub%20folder?a=b/c&d=%20");
    EXPECT_EQ(status_of(answer), 301) << answer;
    EXPECT_EQ(field_of(answer, "Location"), "./sub%20folder/?a=b/c&d=%20");
    // Without "./" this would be a scheme.
    EXPECT_EQ(field_of(get("/sub%20folder/a:b"), "Location"), "./a:b/");
    EXPECT_EQ(field_of(get("//evil.example"), "Location"), "./evil.example/");
    EXPECT_EQ(status_of(get("/%2Fevil.example")), 404);
}

TEST_P(http_static_files, a_mount_without_its_slash_redirects) {
    write("index.html", "top");
    serve();
    handler_.answer = [this](request& incoming) {
        return files_->serve(incoming, incoming.path().substr(sizeof "/mount" - 1));
    };
    EXPECT_EQ(field_of(get("/mount"), "Location"), "./mount/");
    EXPECT_EQ(body_of(get("/mount/")), "top");
}

TEST_P(http_static_files, the_fallback_is_served_for_what_does_not_exist) {
    write("app.html", "app");
    write("sub/x", "");
    static_options options;
    options.fallback = "app.html";
    serve(options);
    for (const char* path : {"/route/of/the/app", "/", "/sub/", "/sub/x/y"}) {
        const std::string answer = get(path);
        EXPECT_EQ(status_of(answer), 200) << path;
        EXPECT_EQ(body_of(answer), "app");
        EXPECT_EQ(field_of(answer, "Content-Type"), "text/html; charset=utf-8");
    }
    EXPECT_EQ(status_of(get("/../x")), 404) << "no path of an application";
}

TEST_P(http_static_files, no_path_leads_out_of_the_root) {
    write("in/page.txt", "inside");
    const std::string secret = "secret of the folder above";
    std::ofstream(folder_.file("secret.txt")) << secret;
    std::filesystem::create_directory(folder_.file("www-sibling"));
    std::ofstream(folder_.file("www-sibling/secret.txt")) << secret;
    std::filesystem::create_symlink("../secret.txt", root() + "/out.txt");
    std::filesystem::create_symlink("../../secret.txt", root() + "/in/out.txt");
    std::filesystem::create_symlink(folder_.file("secret.txt"), root() + "/absolute.txt");
    std::filesystem::create_directory_symlink("..", root() + "/up");
    std::filesystem::create_directory_symlink("/proc/self/root", root() + "/magic");
    serve();
    for (const char* path : {"/../secret.txt",
                             "/in/../../secret.txt",
                             "/in/../page.txt",
                             "/./in/page.txt",
                             "/%2e%2e/secret.txt",
                             "/%2E./secret.txt",
                             "/.%2e/secret.txt",
                             "/in/%2e%2e/in/page.txt",
                             "/..%2fsecret.txt",
                             "/..%2Fsecret.txt",
                             "/%2e%2e%2fsecret.txt",
                             "/in%2fpage.txt",
                             "/%252e%252e/secret.txt",
                             "/..%5csecret.txt",
                             "/..\\secret.txt",
                             "/%5c..%5csecret.txt",
                             "/..;/secret.txt",
                             "/.../secret.txt",
                             "/%c0%ae%c0%ae/secret.txt",
                             "/%c0%af../secret.txt",
                             "/in/page.txt%00",
                             "/in/page.txt%00.html",
                             "/%00",
                             "/..%00/",
                             "/../www-sibling/secret.txt",
                             "/out.txt",
                             "/in/out.txt",
                             "/absolute.txt",
                             "/up/secret.txt",
                             "/up/www/in/page.txt",
                             "/magic/etc/passwd",
                             "/%",
                             "/%2",
                             "/%zz",
                             "/in/page.txt/..",
                             "/..",
                             "/.",
                             "//../secret.txt",
                             "/%2f/etc/passwd",
                             "/%2fetc%2fpasswd",
                             "/~root/",
                             "/C:/secret.txt"}) {
        const std::string answer = get(path);
        EXPECT_EQ(status_of(answer), 404) << path << "\n" << answer;
        EXPECT_EQ(answer.find(secret), answer.npos) << path;
    }
    EXPECT_EQ(status_of(get("/etc/passwd")), 404);
    EXPECT_EQ(status_of(get("//etc/passwd")), 404);
    EXPECT_EQ(status_of(get("/" + std::string(300, 'a'))), 404) << "a name that is too long";
    EXPECT_EQ(body_of(get("/in/page.txt")), "inside");
}

TEST_P(http_static_files, symbolic_links_that_stay_inside_work) {
    write("in/page.txt", "inside");
    std::filesystem::create_symlink("in/page.txt", root() + "/link.txt");
    std::filesystem::create_symlink("../in/./../in/page.txt", root() + "/in/link.txt");
    std::filesystem::create_directory_symlink("in", root() + "/folder");
    std::filesystem::create_symlink("loop", root() + "/loop");
    serve();
    EXPECT_EQ(body_of(get("/link.txt")), "inside");
    EXPECT_EQ(body_of(get("/in/link.txt")), "inside");
    EXPECT_EQ(body_of(get("/folder/page.txt")), "inside");
    EXPECT_EQ(status_of(get("/folder")), 301);
    EXPECT_EQ(status_of(get("/loop")), 404);
}

TEST_P(http_static_files, hidden_files_are_served_on_request_alone) {
    write(".git/config", "x");
    write("a/.env", "y");
    write(".well-known/acme", "z");
    serve();
    EXPECT_EQ(status_of(get("/.git/config")), 404);
    EXPECT_EQ(status_of(get("/%2egit/config")), 404);
    EXPECT_EQ(status_of(get("/a/.env")), 404);
    EXPECT_EQ(body_of(get("/.well-known/acme")), "z");
    static_options options;
    options.hidden = true;
    serve(options);
    EXPECT_EQ(body_of(get("/.git/config")), "x");
    EXPECT_EQ(body_of(get("/a/.env")), "y");
}

TEST_P(http_static_files, a_fifo_or_socket_in_the_root_does_not_block) {
    serve();
    ASSERT_EQ(::mkfifo((root() + "/fifo").c_str(), 0666), 0);
    const unique_fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (root() + "/socket").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(status_of(get("/fifo")), 404);
    EXPECT_EQ(status_of(get("/socket")), 404);
}

TEST_P(http_static_files, a_file_that_may_not_be_read_is_403) {
    write("a.txt", "x");
    write("closed/a.txt", "x");
    std::filesystem::permissions(root() + "/a.txt", std::filesystem::perms::none);
    std::filesystem::permissions(root() + "/closed", std::filesystem::perms::none);
    serve();
    const unprivileged as_other_user;
    EXPECT_EQ(status_of(get("/a.txt")), 403);
    EXPECT_EQ(status_of(get("/closed/a.txt")), 403);
}

TEST_P(http_static_files, a_root_that_cannot_be_served_is_an_error) {
    EXPECT_EQ(error_of(static_files::open(root() + "/none", {})),
              std::errc::no_such_file_or_directory);
    write("file", "x");
    EXPECT_EQ(error_of(static_files::open(root() + "/file", {})), std::errc::not_a_directory);
    ASSERT_EQ(::mkfifo((root() + "/fifo").c_str(), 0666), 0);
    EXPECT_EQ(error_of(static_files::open(root() + "/fifo", {})), std::errc::not_a_directory);
    for (const int mode : {0444, 0111, 0755}) {
        std::filesystem::permissions(root(), std::filesystem::perms(mode));
        const unprivileged as_other_user;
        const auto opened = static_files::open(root(), {});
        EXPECT_EQ(error_of(opened), mode == 0755
                                        ? std::error_code()
                                        : std::make_error_code(std::errc::permission_denied))
            << mode;
    }
}

TEST_P(http_static_files, bodies_are_whole_around_each_limit) {
    serve();
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, static_files::whole_limit, static_files::whole_limit + 1,
          static_files::slice_bytes, static_files::slice_bytes + 1,
          3 * static_files::slice_bytes + 17}) {
        const std::string content = long_text(size);
        write("a.bin", content);
        const std::string answer = get("/a.bin");
        EXPECT_EQ(field_of(answer, "Content-Length"), std::to_string(size));
        EXPECT_EQ(field_of(answer, "Content-Type"), "application/octet-stream");
        EXPECT_TRUE(body_of(answer) == content) << size;
    }
}

TEST_P(http_static_files, files_that_are_not_in_memory_are_read_from_the_disk) {
    // Where the file system keeps them nevertheless, this is the test above once more.
    for (const std::size_t cache : {std::size_t{0}, std::size_t{10'000'000}}) {
        for (const std::size_t size : {std::size_t{50'000}, std::size_t{1'000'000}}) {
            const std::string content = long_text(size);
            write("a.bin", content);
            const unique_fd file(::open((root() + "/a.bin").c_str(), O_RDONLY | O_CLOEXEC));
            ASSERT_EQ(::fsync(file.get()), 0);
            ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
            static_options options;
            options.cache_bytes = cache;
            serve(options);
            EXPECT_TRUE(body_of(get("/a.bin")) == content) << size;
        }
    }
}

TEST_P(http_static_files, a_file_that_shrinks_while_it_is_sent_cuts_the_connection) {
    const std::size_t size = 8 * 1024 * 1024;
    write("a.bin", long_text(size));
    serve();
    limits_.write_time = 20s;
    socket_buffer_ = 64 * 1024;
    std::string answer;
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all("GET /a.bin HTTP/1.1\r\nHost: x\r\n\r\n"));
        EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
        std::filesystem::resize_file(root() + "/a.bin", size / 2);
        co_await read_all(client, answer);
        client.close();
    });
    EXPECT_EQ(field_of(answer, "Content-Length"), std::to_string(size));
    EXPECT_LT(body_of(answer).size(), size) << "made up";
    EXPECT_TRUE(long_text(size).starts_with(body_of(answer)));
}

TEST_P(http_static_files, a_file_that_grows_while_it_is_sent_has_its_declared_size) {
    const std::string content = long_text(4 * 1024 * 1024);
    write("a.bin", content);
    serve();
    limits_.write_time = 20s;
    socket_buffer_ = 64 * 1024;
    std::string answer;
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all(
            "GET /a.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
        std::ofstream(root() + "/a.bin", std::ios::app) << "more";
        co_await read_all(client, answer);
        client.close();
    });
    EXPECT_TRUE(body_of(answer) == content);
}

TEST_P(http_static_files, a_file_for_a_slow_reader_takes_one_buffer_of_memory) {
    if (eddy::testing::is_sanitized) GTEST_SKIP() << "its heap is another one";
    const std::size_t size = 64 * 1024 * 1024;
    write("a.bin", "");
    std::filesystem::resize_file(root() + "/a.bin", size);
    serve();
    limits_.write_time = 40s;
    socket_buffer_ = 64 * 1024;
    const auto used = [] {
        const auto heap = ::mallinfo2();
        return heap.uordblks + heap.hblkhd;
    };
    std::size_t total = 0;
    with_session([&](stream& client) -> task<void> {
        const std::size_t before = used();
        std::size_t most = before;
        must(co_await client.write_all(
            "GET /a.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        for (int i = 0;; ++i) {
            auto received = co_await client.read();
            if (!received) break;
            total += received->size();
            most = std::max(most, used());
            // Now and then the server is ahead by all that it may.
            if (i % 64 == 0)
                for (int turns = 0; turns < 20; ++turns) co_await loop::current().yield();
        }
        client.close();
        // The slice, receive buffers, and the simulator's network, which is in memory, too.
        EXPECT_LT(most - before, std::size_t{1024} * 1024);
    });
    EXPECT_GT(total, size);
}

TEST_P(http_static_files, a_small_file_that_is_written_without_pause_is_served) {
    write("log.txt", "0123456789");
    serve();
    std::atomic<bool> is_over{false};
    std::thread writer([&, path = root() + "/log.txt"] {
        const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        while (!is_over && ::pwrite(file, "0", 1, 0) == 1) {
        }
        ::close(file);
    });
    for (int i = 0; i < 100; ++i) {
        const std::string answer = get("/log.txt");
        EXPECT_EQ(status_of(answer), 200);
        EXPECT_EQ(body_of(answer), "0123456789");
    }
    is_over = true;
    writer.join();
}

TEST_P(http_static_files, without_descriptors_the_answer_is_503) {
    if (sanitizer_needs_descriptors()) GTEST_SKIP() << "the sanitizer needs some";
    write("a.txt", "hello");
    serve();
    handler_.answer = [this](request& incoming) { return serve_without_descriptors(incoming); };
    EXPECT_EQ(status_of(get("/a.txt")), 503);
}

}  // namespace
}  // namespace eddy::http
