// Parts of static files without a loop: types, paths, listings, validators, and the cache.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "http/files/file_cache.hpp"
#include "http/files/file_path.hpp"
#include "http/files/folder_listing.hpp"
#include "http/files/media_types.hpp"
#include "http/files/representation.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace eddy::http {
namespace {

TEST(http_media_types, are_found_by_extension) {
    EXPECT_EQ(media_type_of("a.html").name, "text/html; charset=utf-8");
    EXPECT_EQ(media_type_of("a/b.c/d.JS").name, "text/javascript; charset=utf-8");
    EXPECT_EQ(media_type_of("a.tar.gz").name, "application/gzip");
    EXPECT_EQ(media_type_of(".css").name, "text/css; charset=utf-8");
    EXPECT_EQ(media_type_of("a.webmanifest").name, "application/manifest+json");
    EXPECT_EQ(media_type_of("a.3gp").name, "video/3gpp");
    EXPECT_EQ(media_type_of("a.zst").name, "application/zstd");
    for (const char* name : {"", "a", "a.", "html", "a.html/b", "a.unknown", "a.htmlx",
                             "a.webmanifestx", "a.html ", "a.\xc3\xa4"})
        EXPECT_EQ(media_type_of(name).name, "application/octet-stream") << name;
    EXPECT_TRUE(media_type_of("a.svg").compressible);
    EXPECT_FALSE(media_type_of("a.png").compressible);
    EXPECT_FALSE(media_type_of("a").compressible);
}

/// The name and a slash for a folder; "!" for what is refused.
std::string decoded(std::string_view path, bool hidden = false) {
    const auto made = decode_path(path, hidden);
    return made ? made->name + (made->is_folder ? "/" : "") : "!";
}

TEST(http_file_path, segments_are_decoded_one_by_one) {
    EXPECT_EQ(decoded("/a/b%20c"), "a/b c");
    EXPECT_EQ(decoded("a"), "a");
    EXPECT_EQ(decoded("/a/"), "a/");
    EXPECT_EQ(decoded(""), "/");
    EXPECT_EQ(decoded("/"), "/");
    EXPECT_EQ(decoded("//a///b//"), "a/b/");
    EXPECT_EQ(decoded("/a%5Cb"), "a\\b");
    EXPECT_EQ(decoded("/...,/a."), "!") << "hidden";
    EXPECT_EQ(decoded("/a..b/c."), "a..b/c.");
    EXPECT_EQ(decoded("/%25"), "%");
    EXPECT_EQ(decoded("/+"), "+");
}

TEST(http_file_path, what_names_no_file_below_a_root_is_refused) {
    for (const char* path : {"/..", "/.", "/a/../b", "/%2e%2e/a", "/.%2E", "/a/%2e", "/a%2Fb",
                             "/a%2fb", "/%2f", "/a%00", "/%00", "/%", "/%4", "/a%zz/b"})
        EXPECT_EQ(decoded(path, true), "!") << path;
    EXPECT_EQ(decoded("/%252e%252e/a"), "%2e%2e/a") << "decoded once";
}

TEST(http_file_path, hidden_segments_are_refused_unless_wanted) {
    EXPECT_EQ(decoded("/.git/a"), "!");
    EXPECT_EQ(decoded("/a/%2egit"), "!");
    EXPECT_EQ(decoded("/.git/a", true), ".git/a");
    EXPECT_EQ(decoded("/.well-known/a"), ".well-known/a");
}

TEST(http_file_path, no_random_path_names_what_is_above) {
    constexpr std::string_view pieces[] = {".",  "..",  "/", "%2e", "%2E", "%2f",   "%5c",
                                           "\\", "%00", "%", "a",   "%61", "%252e", "//"};
    random_generator dice(testing::seed_of_this_run());
    for (int i = 0; i < testing::rounds(100'000); ++i) {
        std::string path;
        for (std::uint64_t left = dice.below(8); left > 0; --left)
            path += pieces[dice.below(std::size(pieces))];
        const auto made = decode_path(path, true);
        if (!made) continue;
        EXPECT_EQ(made->name.find('\0'), std::string::npos);
        EXPECT_FALSE(made->name.starts_with('/') || made->name.ends_with('/')) << path;
        const std::string slashed = "/" + made->name + "/";
        for (const char* part : {"/../", "/./"})
            EXPECT_EQ(slashed.find(part), std::string::npos) << path;
        if (!made->name.empty()) EXPECT_EQ(slashed.find("//"), std::string::npos) << path;
    }
}

folder_entry entry_of(std::string name, mode_t mode, std::uint64_t size) {
    folder_entry made;
    made.name = std::move(name);
    made.status.mode = mode;
    made.status.size = size;
    made.status.modified_seconds = 784'111'777;
    return made;
}

TEST(http_folder_listing, folders_come_first_and_all_is_escaped) {
    const std::string page =
        list_folder("a&b/<c>",
                    {entry_of("z.txt", S_IFREG, 1234), entry_of("\"x'<y>&.txt", S_IFREG, 0),
                     entry_of("z folder", S_IFDIR, 4096), entry_of("a:b", S_IFDIR, 4096)},
                    false);
    const auto first = page.find("<a href=\"../\">../</a>");
    const auto second = page.find("<a href=\"a%3Ab/\">a:b/</a></td><td></td>");
    const auto third = page.find("<a href=\"z%20folder/\">z folder/</a>");
    const auto fourth = page.find(
        "<a href=\"%22x%27%3Cy%3E%26.txt\">&quot;x&#39;&lt;y&gt;&amp;.txt"
        "</a></td><td>0</td>");
    const auto fifth = page.find(
        "<a href=\"z.txt\">z.txt</a></td><td>1234</td>"
        "<td>Sun, 06 Nov 1994 08:49:37 GMT</td>");
    ASSERT_NE(fifth, page.npos) << page;
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    EXPECT_LT(third, fourth);
    EXPECT_LT(fourth, fifth);
    EXPECT_NE(page.find("<title>Index of /a&amp;b/&lt;c&gt;/</title>"), page.npos);
    EXPECT_EQ(page.find("there are more"), page.npos);
}

TEST(http_folder_listing, the_root_has_no_way_up_and_a_cut_one_says_so) {
    const std::string page = list_folder("", {entry_of("a", S_IFREG, 1)}, true);
    EXPECT_EQ(page.find("../"), page.npos);
    EXPECT_NE(page.find("<title>Index of /</title>"), page.npos);
    EXPECT_NE(page.find("The first 1 entries that the system named; there are more."), page.npos);
}

TEST(http_representation, its_tag_changes_with_the_file) {
    file_status status;
    status.size = 10;
    status.inode = 5;
    status.changed_seconds = 100;
    const auto tag = [](const file_status& of, content_coding coding) {
        return representation_of(of, coding, 1000).etag;
    };
    const std::string first = tag(status, content_coding::identity);
    EXPECT_EQ(first, "\"64.0-a-5\"");
    EXPECT_NE(tag(status, content_coding::br), first);
    for (int i = 0; i < 4; ++i) {
        file_status other = status;
        if (i == 0) ++other.size;
        if (i == 1) ++other.inode;
        if (i == 2) ++other.changed_seconds;
        if (i == 3) ++other.changed_nanoseconds;
        EXPECT_NE(tag(other, content_coding::identity), first) << i;
    }
}

TEST(http_representation, its_date_is_not_in_the_future) {
    file_status status;
    status.modified_seconds = 784'111'777;
    const auto date = [&](std::int64_t now) {
        return representation_of(status, content_coding::identity, now).last_modified;
    };
    EXPECT_EQ(date(2'000'000'000), "Sun, 06 Nov 1994 08:49:37 GMT");
    EXPECT_EQ(date(784'111'776), "Sun, 06 Nov 1994 08:49:36 GMT");
    status.modified_seconds = INT64_MIN;
    EXPECT_EQ(date(2'000'000'000), "") << "before the year 0";
}

std::shared_ptr<resource> resource_of(std::string name, std::size_t size) {
    auto made = std::make_shared<resource>();
    made->name = std::move(name);
    made->variants.emplace_back();
    if (size > 0)
        made->variants[0].content = std::make_shared<const file_content>(std::string(size, 'x'));
    return made;
}

TEST(http_file_cache, what_was_not_used_longest_goes_first) {
    const std::size_t cost = resource_of("a", 1000)->cost();
    file_cache cache(3 * cost);
    for (const char* name : {"a", "b", "c"}) cache.insert(resource_of(name, 1000));
    EXPECT_EQ(cache.bytes(), 3 * cost) << "at its limit";
    EXPECT_TRUE(cache.find("a"));
    cache.insert(resource_of("d", 1000));
    EXPECT_EQ(cache.bytes(), 3 * cost);
    EXPECT_FALSE(cache.find("b"));
    for (const char* name : {"a", "c", "d"}) EXPECT_TRUE(cache.find(name)) << name;
}

TEST(http_file_cache, what_costs_more_than_the_limit_is_left_out) {
    const std::size_t cost = resource_of("a", 1000)->cost();
    file_cache cache(cost);
    cache.insert(resource_of("b", 10));
    cache.insert(resource_of("a", 1001));
    EXPECT_FALSE(cache.find("a"));
    EXPECT_TRUE(cache.find("b")) << "nothing had to go for it";
    cache.insert(resource_of("a", 1000));
    EXPECT_TRUE(cache.find("a"));
    EXPECT_EQ(cache.bytes(), cost);
    file_cache none(0);
    none.insert(resource_of("a", 0));
    EXPECT_EQ(none.bytes(), 0u);
}

TEST(http_file_cache, one_of_the_same_name_takes_the_place) {
    file_cache cache(100'000);
    cache.insert(resource_of("a", 1000));
    const auto second = resource_of("a", 50);
    cache.insert(second);
    EXPECT_EQ(cache.find("a"), second);
    EXPECT_EQ(cache.bytes(), second->cost());
    cache.erase("a");
    cache.erase("a");
    EXPECT_EQ(cache.bytes(), 0u);
}

TEST(http_file_cache, content_that_is_filled_in_counts) {
    file_cache cache(resource_of("a", 0)->cost() + resource_of("b", 1000)->cost());
    const auto first = resource_of("a", 0);
    const auto second = resource_of("b", 0);
    cache.insert(first);
    cache.insert(second);
    second->variants[0].content = std::make_shared<const file_content>(std::string(1000, 'x'));
    cache.recount(second);
    EXPECT_EQ(cache.bytes(), cache.limit());
    EXPECT_TRUE(cache.find("a"));
    first->variants[0].content = std::make_shared<const file_content>(std::string(1000, 'x'));
    cache.recount(first);
    EXPECT_TRUE(cache.find("a"));
    EXPECT_FALSE(cache.find("b"));
    cache.recount(second);
    EXPECT_FALSE(cache.find("b")) << "it is in the cache no more";
}

TEST(http_file_cache, at_most_load_limit_contents_are_read_at_a_time) {
    file_cache cache(1000);
    std::vector<std::unique_ptr<file_cache::load>> loads;
    const auto begin = [&] {
        return std::unique_ptr<file_cache::load>(new file_cache::load(cache.begin_load()));
    };
    for (std::size_t i = 0; i < file_cache::load_limit; ++i) {
        loads.push_back(begin());
        EXPECT_TRUE(*loads.back());
    }
    EXPECT_FALSE(*begin());
    EXPECT_FALSE(cache.begin_load()) << "one that was refused does not count";
    loads.pop_back();
    EXPECT_TRUE(cache.begin_load());
}

}  // namespace
}  // namespace eddy::http
