// Templates: tags, escaping, lines, partials, limits, files and reloading.
#include <eddy/http/templates.hpp>

#include "base/files/temporary_folder.hpp"
#include "http/templates/compiled.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

namespace fs = std::filesystem;

std::string render(const std::string& text, const template_data& data = {}) {
    const auto compiled = compile_template(text, 32);
    if (!compiled) return "error " + compiled.error();
    const auto page = render_template(*compiled, data, [](auto) { return nullptr; }, {});
    return page ? *page : "error " + page.error();
}

TEST(http_templates, values) {
    const template_data data{{"name", "Ada"},
                             {"age", 36},
                             {"half", 0.5},
                             {"yes", true},
                             {"no", false},
                             {"empty", ""},
                             {"one", {{"two", {{"three", "3"}}}}}};
    EXPECT_EQ(render("{{name}}, {{ age }}, {{half}}{{yes}}{{no}}{{empty}}{{missing}}.", data),
              "Ada, 36, 0.5.");
    EXPECT_EQ(render("{{one.two.three}}{{one.two}}{{one.none.three}}", data), "3");
}

TEST(http_templates, escaping) {
    const template_data data{{"x", "<a href=\"'\">&</a>"}};
    EXPECT_EQ(render("{{x}}", data), "&lt;a href=&quot;&#39;&quot;&gt;&amp;&lt;/a&gt;");
    EXPECT_EQ(render("{{{x}}}{{&x}}", data), "<a href=\"'\">&</a><a href=\"'\">&</a>");
}

TEST(http_templates, sections) {
    template_data::list rows;
    rows.push_back({{"n", 1}});
    rows.push_back({{"n", 2}, {"last", true}});
    const template_data data{{"rows", rows},
                             {"words", template_data::list{"a", "b"}},
                             {"none", template_data::list()},
                             {"yes", true},
                             {"no", false},
                             {"empty", ""},
                             {"text", "t"},
                             {"n", 9},
                             {"inner", {{"m", 5}}}};
    EXPECT_EQ(render("{{#rows}}{{n}}{{^last}}, {{/last}}{{/rows}}", data), "1, 2");
    EXPECT_EQ(render("{{#words}}<{{.}}>{{/words}}", data), "<a><b>");
    EXPECT_EQ(render("{{#none}}x{{/none}}{{^none}}nothing{{/none}}", data), "nothing");
    EXPECT_EQ(render("{{#yes}}y{{/yes}}{{#no}}n{{/no}}{{#empty}}e{{/empty}}", data), "y");
    EXPECT_EQ(render("{{#text}}{{.}}{{n}}{{/text}}{{#inner}}{{n}}{{m}}{{/inner}}", data), "t995");
    EXPECT_EQ(render("{{#missing}}x{{/missing}}{{^missing}}m{{/missing}}", data), "m");
}

TEST(http_templates, lines_of_tags_alone_are_dropped) {
    const template_data data{{"rows", template_data::list{"a", "b"}}, {"empty", ""}};
    EXPECT_EQ(render("<ul>\n  {{#rows}}\n  <li>{{.}}</li>\n  {{/rows}}\n</ul>\n", data),
              "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n");
    EXPECT_EQ(render("a\r\n{{! note }}\r\nb\r\n", data), "a\r\nb\r\n");
    EXPECT_EQ(render("a\n{{empty}}\nb", data), "a\n\nb");
    EXPECT_EQ(render("a {{! note }}\nb", data), "a \nb");
    EXPECT_EQ(render("a\n  {{#rows}}{{/rows}}", data), "a\n");
    EXPECT_EQ(render("{{#rows}}x{{/rows}}\n\n\ny", data), "xx\n\n\ny");
}

TEST(http_templates, data_is_not_a_template) {
    EXPECT_EQ(render("{{x}}{{{x}}}", {{"x", "{{y}}"}, {"y", "wrong"}}), "{{y}}{{y}}");
}

TEST(http_templates, errors_name_the_line) {
    EXPECT_EQ(render("a\n{{b"), "error 2: a tag has no end: write }}");
    EXPECT_EQ(render("\n\n{{{b}}"), "error 3: a tag has no end: write }}}");
    EXPECT_EQ(render("a\n{{=<% %>=}}"),
              "error 2: other delimiters are not supported: use {{ and }}");
    EXPECT_EQ(render("{{").substr(0, 8), "error 1:");
    EXPECT_EQ(render("a\n{{#b}}\n"), "error 2: Unclosed section \"b\"");
    EXPECT_EQ(render("a\n\n{{/b}}\n").substr(0, 8), "error 3:");
    EXPECT_EQ(render("{{#a}}\n{{#b}}{{/a}}{{/b}}").substr(0, 6), "error ");
}

TEST(http_templates, sections_nest_to_a_limit) {
    const auto nested = [](int depth) {
        std::string text;
        for (int i = 0; i < depth; ++i) text += "{{#a}}";
        text += "x";
        for (int i = 0; i < depth; ++i) text += "{{/a}}";
        return text;
    };
    EXPECT_EQ(render(nested(32), {{"a", true}}), "x");
    EXPECT_EQ(render(nested(33)), "error 1: more than 32 sections are within each other");
    EXPECT_EQ(render(nested(100'000)).substr(0, 8), "error 1:");
}

TEST(http_templates, any_text_is_rendered_or_refused) {
    for (const char* const text :
         {"", "{", "}}", "{{}}", "{{{}}}", "{{#}}{{/}}", "{{^}}x{{/}}", "{{>}}", "{{&}}", "{{!}}",
          "{{{", "{{{{a}}}}", "{{a}", "{{.}}", "{{..}}", "{{.a}}", "{{a.}}", "{{/}}", "\0{{a}}"})
        static_cast<void>(render(text, {{"a", {{"b", "c"}}}}));
}

class http_template_files : public ::testing::Test {
protected:
    void write(const std::string& name, std::string_view text) {
        const fs::path path = fs::path(folder_.path()) / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
        // Some file systems count in ticks of the clock.
        fs::last_write_time(path, fs::last_write_time(path) + std::chrono::seconds(++writes_));
    }
    std::expected<templates, std::string> open(const template_options& options = {}) {
        return templates::open(folder_.path(), options);
    }
    std::string path(const std::string& name) const {
        return std::string(folder_.path()) + "/" + name;
    }

    eddy::testing::temporary_folder folder_;
    int writes_ = 0;
};

TEST_F(http_template_files, a_page_with_partials) {
    write("page.mustache", "{{> parts/head }}\n<p>{{text}}</p>\n");
    write("parts/head.mustache", "<h1>{{title}}</h1>\n");
    write("note.txt", "{{#");
    auto pages = open();
    ASSERT_TRUE(pages) << pages.error();
    const response made = pages->render("page", {{"title", "A & B"}, {"text", "c"}}, 201);
    EXPECT_EQ(made.status, 201);
    EXPECT_EQ(made.headers.find("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(made.body.text(), "<h1>A &amp; B</h1>\n<p>c</p>\n");
}

TEST_F(http_template_files, errors_name_the_file) {
    write("a.mustache", "1\n{{#b}}");
    auto pages = open();
    ASSERT_FALSE(pages);
    EXPECT_EQ(pages.error().rfind(path("a.mustache:2: "), 0), 0U) << pages.error();
    write("a.mustache", "1\n\n{{#b}}{{> none}}{{/b}}");
    pages = open();
    ASSERT_FALSE(pages);
    EXPECT_EQ(pages.error().rfind(path("a.mustache:3: there is no partial \"none\""), 0), 0U)
        << pages.error();
    EXPECT_EQ(templates::open(path("missing")).error().rfind(path("missing: "), 0), 0U);
}

TEST_F(http_template_files, a_folder_without_templates_is_an_error) {
    write("page.html", "<p>");
    fs::create_symlink(path("page.html"), path("link.mustache"));
    const auto pages = open();
    ASSERT_FALSE(pages);
    EXPECT_EQ(pages.error(), std::string(folder_.path()) + ": no file's name ends with .mustache");
    template_options options;
    options.reload = true;
    EXPECT_TRUE(open(options)) << "it may be filled later";
}

TEST_F(http_template_files, no_name_leads_out_of_the_folder) {
    write("in/page.mustache", "in");
    write("out.mustache", "secret");
    fs::create_symlink(path("out.mustache"), path("in/link.mustache"));
    fs::create_directory_symlink(folder_.path(), path("in/up"));
    auto pages = templates::open(path("in"));
    ASSERT_TRUE(pages) << pages.error();
    EXPECT_EQ(pages->render("page", {}).body.text(), "in");
    for (const std::string& name : {std::string("../out"), std::string("link"),
                                    std::string("up/out"), path("out"), std::string("")}) {
        const response made = pages->render(name, {});
        EXPECT_EQ(made.status, 500) << name;
        EXPECT_EQ(made.body.text().find("secret"), std::string::npos);
    }
    write("in/page.mustache", "{{> ../out}}");
    EXPECT_FALSE(templates::open(path("in")));
}

TEST_F(http_template_files, a_partial_that_includes_itself_ends) {
    write("tree.mustache", "({{name}}{{#nodes}}{{> tree}}{{/nodes}})");
    write("loop.mustache", "x{{> loop}}");
    auto pages = open();
    ASSERT_TRUE(pages) << pages.error();
    const template_data leaf{{"name", "c"}, {"nodes", template_data::list()}};
    const template_data inner{{"name", "b"}, {"nodes", template_data::list{leaf, leaf}}};
    const template_data root{{"name", "a"}, {"nodes", template_data::list{inner}}};
    EXPECT_EQ(pages->text("tree", root), "(a(b(c)(c)))");
    const auto endless = pages->text("loop", {});
    ASSERT_FALSE(endless);
    EXPECT_EQ(endless.error(), path("loop.mustache") +
                                   ": more than 32 partials are within each other, the last one "
                                   "\"loop\"");
    EXPECT_EQ(pages->render("loop", {}).status, 500);
}

TEST_F(http_template_files, partials_nest_to_a_limit) {
    template_options options;
    options.partial_depth = 2;
    write("0.mustache", "{{> 1}}");
    write("1.mustache", "{{> 2}}");
    write("2.mustache", "x");
    auto pages = open(options);
    ASSERT_TRUE(pages) << pages.error();
    EXPECT_EQ(pages->text("0", {}), "x");
    write("2.mustache", "{{> 3}}");
    write("3.mustache", "y");
    pages = open(options);
    ASSERT_TRUE(pages) << pages.error();
    EXPECT_FALSE(pages->text("0", {}));
    EXPECT_EQ(pages->text("1", {}), "y");
}

TEST_F(http_template_files, limits_of_files_and_pages) {
    template_options options;
    options.file_bytes = 100;
    options.file_count = 2;
    options.page_bytes = 200;
    write("a.mustache", std::string(100, 'a'));
    write("b.mustache", "{{#x}}{{x}}{{x}}{{/x}}");
    auto pages = open(options);
    ASSERT_TRUE(pages) << pages.error();
    EXPECT_TRUE(pages->text("a", {}));
    EXPECT_TRUE(pages->text("b", {{"x", std::string(100, 'x')}}));
    EXPECT_FALSE(pages->text("b", {{"x", std::string(101, 'x')}}));
    write("b.mustache", std::string(101, 'b'));
    EXPECT_FALSE(open(options));
    write("b.mustache", "b");
    write("c.mustache", "c");
    EXPECT_FALSE(open(options));
}

TEST_F(http_template_files, reload) {
    write("a.mustache", "one");
    template_options options;
    options.reload = true;
    auto pages = open(options);
    auto kept = open();
    ASSERT_TRUE(pages && kept);
    write("a.mustache", "two {{> b}}");
    write("b.mustache", "new");
    EXPECT_EQ(pages->text("a", {}), "two new");
    EXPECT_EQ(kept->text("a", {}), "one");
    write("b.mustache", "{{#c}}");
    const response broken = pages->render("a", {});
    EXPECT_EQ(broken.status, 500);
    EXPECT_NE(broken.body.text().find("b.mustache:1: "), std::string::npos);
    write("b.mustache", "good");
    EXPECT_EQ(pages->text("a", {}), "two good");
    fs::remove(path("b.mustache"));
    EXPECT_FALSE(pages->text("a", {}));
}

}  // namespace
}  // namespace eddy::http
