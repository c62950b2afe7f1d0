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

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

TEST(http_html_insertion, stands_before_the_last_end_of_the_body) {
    EXPECT_EQ(insert_into_html("<body>a</body></html>", "+"), "<body>a+</body></html>");
    EXPECT_EQ(insert_into_html("a</BoDy>b</bODY>c", "+"), "a</BoDy>b+</bODY>c");
    EXPECT_EQ(insert_into_html("</body>", "+"), "+</body>");
    for (const char* const none : {"", "a", "</body", "< /body>", "</body >"})
        EXPECT_EQ(insert_into_html(none, "+"), std::string(none) + "+");
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

/// The first page, sorted by name.
std::string page_of(std::string_view path, std::vector<folder_entry> entries, bool is_cut = false) {
    return list_folder(path, {std::move(entries), is_cut, 1000}, {});
}

TEST(http_folder_listing, folders_come_first_and_all_is_escaped) {
    const std::string page =
        page_of("a&b/<c>", {entry_of("z.txt", S_IFREG, 1234), entry_of("\"x'<y>&.txt", S_IFREG, 0),
                            entry_of("z folder", S_IFDIR, 4096), entry_of("a:b", S_IFDIR, 4096)});
    const auto first = page.find("<a href=\"../\">../</a>");
    const auto second = page.find("<a href=\"a%3Ab/\">a:b/</a></td><td></td>");
    const auto third = page.find("<a href=\"z%20folder/\">z folder/</a>");
    const auto fourth = page.find(
        "<a href=\"%22x%27%3Cy%3E%26.txt\">&quot;x&#39;&lt;y&gt;&amp;.txt"
        "</a></td><td title=\"0 bytes\">0 B</td>");
    const auto fifth = page.find(
        "<a href=\"z.txt\">z.txt</a></td><td title=\"1,234 bytes\">1.2 KiB</td>"
        "<td>1994-11-06 08:49</td>");
    ASSERT_NE(fifth, page.npos) << page;
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    EXPECT_LT(third, fourth);
    EXPECT_LT(fourth, fifth);
    EXPECT_NE(page.find("<title>Index of /a&amp;b/&lt;c&gt;/</title>"), page.npos);
    EXPECT_EQ(page.find("more entries"), page.npos);
    EXPECT_EQ(page.find(" page</a>"), page.npos) << "there is one";
}

TEST(http_folder_listing, the_root_has_no_way_up_and_a_cut_one_says_so) {
    const std::string page = page_of("", {entry_of("a", S_IFREG, 1)}, true);
    EXPECT_EQ(page.find("../"), page.npos);
    EXPECT_NE(page.find("<title>Index of /</title>"), page.npos);
    EXPECT_NE(page.find("The folder has more entries; these are the first 1 that"), page.npos);
}

TEST(http_folder_listing, it_has_the_theme_and_the_width_of_the_screen) {
    const std::string page = page_of("", {entry_of("a", S_IFREG, 1)});
    for (const char* part : {"color-scheme:light dark", "<meta name=\"viewport\"",
                             "td:first-child{overflow-wrap:anywhere}", "white-space:nowrap"})
        EXPECT_NE(page.find(part), page.npos) << part;
}

TEST(http_folder_listing, names_are_in_natural_order) {
    const std::vector<std::string> expected = {
        "",     "-1", "0", "01",       "1",         "1a",  "2",       "010",
        "10",   "A",  "a", "A1",       "a2",        "a2b", "a2b1",    "a10",
        "a10b", "B",  "b", "img9.png", "img10.png", "z",   "\xc3\xa4"};
    std::vector<std::string> sorted(expected.rbegin(), expected.rend());
    std::ranges::sort(sorted,
                      [](const auto& a, const auto& b) { return compare_naturally(a, b) < 0; });
    EXPECT_EQ(sorted, expected);
    for (const std::string& a : expected)
        for (const std::string& b : expected)
            EXPECT_EQ(compare_naturally(a, b) == 0, a == b) << a << " " << b;
    EXPECT_LT(compare_naturally("v99999999999999999999999998", "v99999999999999999999999999"), 0);
}

/// Names of files of a page, in their order.
std::string names_of(const std::string& page) {
    constexpr std::string_view before = "<tr><td><a href=\"";
    std::string names;
    for (auto at = page.find(before); at != page.npos; at = page.find(before, at + 1)) {
        const auto begin = at + before.size();
        names += page.substr(begin, page.find('"', begin) - begin) + " ";
    }
    return names;
}

TEST(http_folder_listing, columns_are_sorted_by_and_show_it) {
    std::vector<folder_entry> entries = {entry_of("b", S_IFREG, 5), entry_of("a", S_IFREG, 5),
                                         entry_of("c", S_IFREG, 1), entry_of("e", S_IFDIR, 9),
                                         entry_of("d", S_IFDIR, 8)};
    entries[0].status.modified_seconds = 1;
    entries[2].status.modified_nanoseconds = 1;
    const auto shown = [&](const char* sort, const char* order) {
        return list_folder("", {entries, false, 10}, listing_view::from(sort, order, {}));
    };
    EXPECT_EQ(names_of(shown("name", "asc")), "d/ e/ a b c ");
    EXPECT_EQ(names_of(shown("name", "desc")), "e/ d/ c b a ");
    EXPECT_EQ(names_of(shown("size", "asc")), "d/ e/ c a b ");
    EXPECT_EQ(names_of(shown("size", "desc")), "d/ e/ a b c ");
    EXPECT_EQ(names_of(shown("time", "asc")), "d/ e/ b a c ");
    EXPECT_EQ(names_of(shown("time", "desc")), "d/ e/ c a b ");
    EXPECT_EQ(shown("nonsense", "nonsense"), list_folder("", {entries, false, 10}, {}));
    const std::string page = shown("size", "desc");
    for (const char* part :
         {"<th><a href=\"?sort=name&amp;order=asc\">Name</a></th>",
          "<th aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\">Size</a> &darr;</th>",
          "<th><a href=\"?sort=time&amp;order=desc\">Changed (UTC)</a></th>"})
        EXPECT_NE(page.find(part), page.npos) << part << "\n" << page;
}

TEST(http_folder_listing, pages_have_their_entries_and_links) {
    std::vector<folder_entry> entries;
    for (int i = 5; i > 0; --i) entries.push_back(entry_of(std::to_string(i), S_IFREG, 1));
    const auto page = [&](const char* number) {
        return list_folder("", {entries, false, 2}, listing_view::from("name", "asc", number));
    };
    const std::string next = "<a rel=\"next\" href=\"?sort=name&amp;order=asc&amp;page=";
    const std::string previous = "<a rel=\"prev\" href=\"?sort=name&amp;order=asc";
    EXPECT_EQ(names_of(page("1")), "1 2 ");
    EXPECT_NE(page("1").find("<p>1 to 2 of 5 entries. " + next + "2\">Next page</a></p>"),
              std::string::npos)
        << page("1");
    EXPECT_EQ(names_of(page("2")), "3 4 ");
    EXPECT_NE(page("2").find("<p>3 to 4 of 5 entries. " + previous + "\">Previous page</a> " +
                             next + "3\">"),
              std::string::npos)
        << page("2");
    EXPECT_EQ(names_of(page("3")), "5 ");
    EXPECT_EQ(page("3").find("Next"), std::string::npos);
    EXPECT_EQ(page("9999999"), page("3")) << "the last one";
    for (const char* none : {"0", "-1", "x", "", "1x", "99999999999999999999"})
        EXPECT_EQ(page(none), page("1")) << none;
    entries.resize(4);
    EXPECT_EQ(page("3"), page("2")) << "the last one is full";
    entries.clear();
    EXPECT_EQ(names_of(page("1")), "");
}

TEST(http_folder_listing, sizes_are_for_readers) {
    for (const auto& [size, text] :
         std::vector<std::pair<std::uint64_t, std::string>>{{0, "0 B"},
                                                            {1023, "1023 B"},
                                                            {1024, "1.0 KiB"},
                                                            {1536, "1.5 KiB"},
                                                            {1024 * 1024 - 1, "1.0 MiB"},
                                                            {1024 * 1024, "1.0 MiB"},
                                                            {5'368'709'120, "5.0 GiB"},
                                                            {UINT64_MAX, "16.0 EiB"}})
        EXPECT_EQ(size_text(size), text) << size;
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
    EXPECT_EQ(first, "\"64.0-a\"");
    EXPECT_NE(tag(status, content_coding::br), first);
    for (int i = 0; i < 3; ++i) {
        file_status other = status;
        if (i == 0) ++other.size;
        if (i == 1) ++other.changed_seconds;
        if (i == 2) ++other.changed_nanoseconds;
        EXPECT_NE(tag(other, content_coding::identity), first) << i;
    }
    // It shows nothing of the disk's layout, and is that of a copy with the same times.
    ++status.inode;
    ++status.device;
    EXPECT_EQ(tag(status, content_coding::identity), first);
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
