#!/usr/bin/env python3
"""Checks of the code's manners: includes between layers, dead files, stray text.

Usage: tools/tidy.py [ROOT]. Prints `path:line: what is wrong` for each fault; fails if there is one.
src/layers.txt is the law of includes; ARCHITECTURE.md explains it.
"""

import collections
import os
import re
import sys
import textwrap

from tidy_words import check_words


def read_layers():
    """The layers that each layer may include, besides itself."""
    layers = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../src/layers.txt"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                name, below = line.lstrip("+ ").split(":")
                layers[name] = set(below.split())
    return layers


LAYERS = read_layers()
# Folders of the layer runtime that are no type, but for all types.
FOR_ALL_RUNTIMES = {"host", "logs", "options", "programs", "scripting", "serving"}
# The rooms of the cache, floor above floor: a room includes what stands on its own floor and below.
CACHE_FLOORS = (
    {"memory"},
    {"types", "keyspace"},
    {"catalog"},
    {"acl", "clients", "config", "engine", "persistence", "rdb", "read_through", "replication", "script"},
    {"commands"},
    {"testing"},
)
# The state that the cache's rooms share, and what others have in its place.
ENGINE_STATE = "cache/engine/engine_state.hpp"
ENGINE_INTERNALS = re.compile(r"(?:\.|->)internals\(\)")
ENGINE_FACES = "use engine_files, engine_clients, engine_settings or replication"
# The subjects of the engine's state: member, struct, its header below src/cache/, and the rooms that write its fields.
STATE_WRITERS = (
    ("settings", "configuration", "config/configuration.hpp", {"config"}),
    ("data", "dataset", "keyspace/dataset.hpp", {"commands", "engine", "keyspace"}),
    ("clients", "client_state", "clients/client_state.hpp", {"clients", "engine"}),
    ("persistence", "persistence_state", "persistence/persistence_state.hpp", {"persistence"}),
    ("replication", "replication_state", "replication/replication_state.hpp", {"replication"}),
)
# Writes of other rooms, by room and field. The numbers only fall.
FOREIGN_WRITES = {
    "clients": {"data.env": 3},
    "commands": {
        "clients.monitors": 1, "clients.paused_until_us": 1, "clients.pauses_writes_only": 1, "clients.refusals": 1,
        "clients.slow_path": 1, "persistence.saves": 1,
    },
    "config": {"data.env": 1},
    "engine": {"persistence.saves": 2, "persistence.snapshot": 1, "replication.run_id": 1, "settings.renamed": 1},
    "persistence": {"clients.slow_path": 3, "data.changes": 1},
    "rdb": {"clients.slow_path": 2, "persistence.load": 1, "persistence.snapshot": 2},
    "read_through": {"clients.slow_path": 1},
    "replication": {
        "clients.blocked_sessions": 1, "clients.copy_waits": 1, "clients.executing": 2, "clients.own_pushes": 2,
        "clients.slow_path": 6, "data.changes": 2, "data.env": 1,
    },
    "script": {
        "clients.executing": 4, "clients.has_effects": 2, "clients.own_pushes": 2,
        "clients.script_waits_ended_at_once": 1, "clients.slow_path": 2, "data.env": 4,
        "persistence.has_half_script": 1,
    },
}
# Units (x.hpp with x.cpp) of a layer that reach each other in a circle of includes, at most. A number only falls.
LARGEST_CIRCLE = {"cache": 4, "io": 16, "runtime": 2, "tls": 6}
LARGEST_CIRCLE_ELSEWHERE = 4

# The one file where the two halves of the program meet: `eddy daemon` against every other command.
PROGRAM = "src/cli/main.cpp"
PROGRAM_LAYERS = set(LAYERS)

# Files of a folder below src/ and include/, at most. A larger one gets rooms: folders, each named after one subject.
MAX_FOLDER_FILES = 40

KERNEL_QUEUES = re.compile(r"^(liburing(/.*)?|liburing\.h|sys/epoll\.h|linux/io_uring\.h)$")
LUA = re.compile(r"^(luajit[^/]*/.*|lua[0-9.]*/.*|(lua|lauxlib|lualib|luajit)\.h|lua\.hpp)$")
LUA_CALL = re.compile(r"\bluaL?_[a-z]\w*\(")
THIRD_PARTY = re.compile(
    r"^((fmt|nlohmann|CLI|gtest|gmock|rapidcheck|benchmark|asio|openssl|brotli|nghttp2|toml\+\+|kainjow|boost)/.*"
    r"|(ares[a-z_]*|xxhash|xxh3|liburing|zlib|zstd|toml|lua|lauxlib|lualib|luajit|mustache|asio|rapidcheck)\.h(pp)?)$"
)
# Public headers that are for users of a library, each with the library's folder. No other header of ours includes them.
OPTIONAL_HEADERS = {"include/eddy/http/json.hpp": "nlohmann/"}
# Not in every standard library that a user of the public headers may have.
UNPORTABLE = re.compile(
    r"\bstd::(format|print|println|generator|flat_map|flat_set|move_only_function|jthread)\b"
    r"|#\s*include\s*<(format|print|generator|flat_map|flat_set|stop_token|stacktrace|mdspan)>"
)

# Lines of a file. Of C++ the functions are bounded, so that a file of many short ones is no fault.
MAX_LINES = 900
MAX_CPP_LINES = 1500
# Lines of a function of the program and the library. Those below are longer; each bound is the next multiple of ten, and
# only falls.
MAX_FUNCTION_LINES = 70
LONG_FUNCTIONS = {
    ("src/wire/resp/reply_parser.cpp", "reply_parser::next"): 90,
}
# EDDY_ASSERT for 1,000 lines of each layer's own code, at least. The figures only rise.
ASSERTIONS = {
    "base": 0.7, "io": 4.0, "wire": 2.3, "lua": 1.3, "net": 0.3, "tls": 2.7, "shm": 3.7, "handoff": 14.1,
    "transport": 0, "serving": 5.8, "http": 1.6, "cache": 2.1, "script": 10.0, "runtime": 6.1, "daemon": 9.9, "cli": 0.9,
}
# Distance by which a layer's figure may be above the one that is noted.
ASSERTIONS_SLACK = 0.5
# Exceptions that these layers throw: what can happen is a result<T>. The numbers only fall.
THROWS = {"io": 4, "net": 0, "runtime": 0}
CODE = (".cpp", ".hpp", ".h", ".c", ".java", ".py", ".sh", ".cmake", ".lua", ".js")
TEXT = CODE + (".txt", ".md", ".json", ".yml", ".yaml", ".toml", ".in", ".html", ".css", ".service", ".conf")
TEXT_NAMES = {"eddy-dev", ".clang-format", ".clang-tidy", ".gitignore", ".editorconfig", "run", "Dockerfile", "LICENSE"}
SKIPPED_FOLDERS = {".git", "build", "corpus", "__pycache__", "node_modules", ".cache", ".idea", ".vscode", "target"}
CPP_FOLDERS = ("src/", "include/", "tests/", "fuzz/", "bench/", "examples/")

AWAITED = re.compile(r"\s*(?:\[\[nodiscard\]\] |static |inline )*(?:eddy::)?(?:awaiting|task)<.*\w\(")
# The layers of the library whose headers say which threads may use them, and the words that do.
THREADED = {"base", "io", "wire", "net", "tls", "shm", "transport", "http", "handoff"}
THREADS = re.compile(r"\bthreads?\b", re.I)
FALLIBLE = re.compile(r"\s*(?:\[\[nodiscard\]\] |static |inline )*(?:task<)?(?:eddy::)?(?:result<|std::expected<)[^=]*?\w\(")
ERRORS = re.compile(r"errc::|\b[Ff]ails?\b|\b[Ee]rrors?\b|\bE[A-Z]{3,}\b|\bThe same\b|\b[Aa]s \w+(::\w+)*\(\)")
YIELDS = re.compile(r"\b[Yy]ields?\b|\bThe same\b")
# Parameters of awaited functions that the caller owns, and the words by which a comment gives their lifetime.
BORROWED = re.compile(r"\b(?:const_bytes|mutable_bytes|std::string_view)\b|\bspan<|\bconst endpoint& ")
LIVES = re.compile(r"\bmust (?:out)?live\b|\bstays? (?:valid|the caller's)\b|\bcopied\b|\bThe same\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Written in pieces, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(" + "FIX" + "ME|" + "XX" + r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}-])/" + r"work/")


class Tree:
    """The text files below a root: `files` maps a path with slashes to the file's text."""

    def __init__(self, root):
        self.files = {}
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(
                f for f in folders
                if f not in SKIPPED_FOLDERS and not os.path.exists(os.path.join(folder, f, "CMakeCache.txt")))
            for name in sorted(names):
                if not name.endswith(TEXT) and name not in TEXT_NAMES:
                    continue
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                if b"\0" not in data:
                    relative = os.path.relpath(path, root).replace(os.sep, "/")
                    self.files[relative] = data.decode("utf-8", errors="replace")

    def cpp(self):
        """The C++ files, as (path, text)."""
        return [(p, t) for p, t in self.files.items()
                if p.endswith((".cpp", ".hpp")) and p.startswith(CPP_FOLDERS)]

    def includes(self):
        """Every include, as (path, line number, quote or angle bracket, what is included)."""
        for path, text in self.cpp():
            for number, line in enumerate(text.split("\n"), 1):
                match = INCLUDE.match(line)
                if match:
                    yield path, number, match.group(1), match.group(2)

    def resolve(self, path, quote, name):
        """The file of this tree that an include means, or None if it lies outside."""
        if name.startswith("eddy/"):
            return "include/" + name
        if quote == "<":
            return None
        candidates = ["src/" + name, os.path.normpath(os.path.join(os.path.dirname(path), name)), name]
        for candidate in candidates:
            if candidate in self.files:
                return candidate
        return None


def layer_of(path):
    """src/net/tcp.cpp and include/eddy/net/tcp.hpp are of the layer net; tests/ has none."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ["include", "eddy"] and len(parts) > 3:
        return parts[2]
    return None


def check_layers(tree):
    """A layer includes only what stands below it."""
    for path, text in tree.cpp():
        layer = layer_of(path)
        if layer is not None and layer not in LAYERS:
            yield path, 1, f"the folder {layer} is no layer; tools/tidy.py and ARCHITECTURE.md list them"
    for path, number, quote, name in tree.includes():
        layer = layer_of(path)
        if layer not in LAYERS:
            continue
        target = tree.resolve(path, quote, name)
        if target is None or (name.startswith("eddy/") and target not in tree.files):
            if quote == '"' or name.startswith("eddy/"):
                yield path, number, f"{name} is no file of ours; a third-party or system header takes <>"
            continue
        if quote == '"' and target != "src/" + name:
            yield path, number, f'include a private header by its path below src/, as in "{layer}/x.hpp", not {name}'
        if path.startswith("include/") and not target.startswith("include/"):
            yield path, number, f"a public header includes the private {name}, which is not installed"
        other = layer_of(target)
        allowed = PROGRAM_LAYERS if path == PROGRAM else LAYERS[layer]
        if other is not None and other != layer and other not in allowed:
            below = ", ".join(sorted(allowed)) or "nothing"
            yield path, number, f"{layer} may not include {other} ({name}); it may include {below}"
        mine, theirs = path.split("/"), target.split("/")
        is_apart = len(mine) > 3 and len(theirs) > 3 and mine[2] != theirs[2] and theirs[2] not in FOR_ALL_RUNTIMES
        if layer == other == "runtime" and is_apart:
            yield path, number, f"the runtime {mine[2]} may not include the runtime {theirs[2]} ({name})"


def check_rooms(tree):
    """A room of the cache includes no room of a floor above its own; tests include any."""
    floors = {room: height for height, rooms in enumerate(CACHE_FLOORS) for room in rooms}

    def room_of(path):
        parts = path.split("/")
        return parts[2] if parts[:2] == ["src", "cache"] and len(parts) > 3 else None

    for path, _ in tree.cpp():
        if path.startswith("src/cache/") and room_of(path) not in floors:
            yield path, 1, "the cache has no such room; CACHE_FLOORS in tools/tidy.py lists them"
    for path, number, quote, name in tree.includes():
        target = tree.resolve(path, quote, name)
        mine, theirs = room_of(path), target and room_of(target)
        if path.endswith("_test.cpp") or mine not in floors or theirs not in floors or theirs == "testing":
            continue
        if floors[theirs] > floors[mine]:
            yield path, number, f"the room {mine} stands below {theirs} and may not include it ({name})"


def check_folders(tree):
    """No folder is a heap."""
    counts = collections.Counter(os.path.dirname(path) for path in tree.files if path.startswith(("src/", "include/")))
    for folder, count in sorted(counts.items()):
        if count > MAX_FOLDER_FILES:
            yield folder, 1, f"{count} files, at most {MAX_FOLDER_FILES}: make rooms of it"


def check_faces(tree):
    """The engine's state is for the cache alone: the server has faces of it, one a subject."""
    for path, number, quote, name in tree.includes():
        if path.startswith("src/") and layer_of(path) != "cache" and name == ENGINE_STATE:
            yield path, number, f"only the cache includes {name}; {ENGINE_FACES}"
    for path, text in tree.cpp():
        if not path.startswith("src/") or layer_of(path) == "cache":
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if ENGINE_INTERNALS.search(line.split("//")[0]):
                yield path, number, f"only the cache calls internals(); {ENGINE_FACES}"


def state_fields(tree):
    """The fields of the engine's state as written in code, `clients.slow_path`, each with the rooms that write it."""
    fields = {}
    for member, struct, header, rooms in STATE_WRITERS:
        body = re.search(rf"^struct {struct} \{{\n(.*?)^\}};", code_of(tree.files.get("src/cache/" + header, "")), re.M | re.S)
        for name in re.findall(r"^    (?!struct )[\w:][\w:<>*&, ]* (\w+)(?: =[^;]*|\{[^;]*)?;", body.group(1) if body else "", re.M):
            fields[f"{member}.{name}"] = rooms
    return fields


def check_state_writers(tree):
    """Each subject of the engine's state is written in its rooms, but for what is noted.

    Seen are assignments, increments, moves, and functions that change containers and pointers, of a field or of a part of
    it, where the code names the subject: `s.clients.slow_path |= x`, `s.data.changes++`, `s.clients.closed.clear()`. Not seen are
    writes through a reference, through a pointer in a field, or by other functions. Statistics (`data.env.counters`) count
    where it happens, in any room.
    """
    fields = state_fields(tree)
    if not fields:
        return
    field = r"(?<![\w.>])(?:\w+(?:\(\))?(?:\.|->))*?(" + "|".join(map(re.escape, fields)) + r")\b(?:\.\w+\b(?!\()|\[[^\]]*\])*"
    changes = r"clear|erase|reset|swap|insert|append|assign|resize|emplace\w*|push_\w+|pop_\w+"
    before = re.compile(r"(?:\+\+|--|std::exchange\(|std::move\()" + field.replace(r"(?<![\w.>])", "", 1) + r"(?=\s*[,;)])")
    behind = re.compile(field + rf"(?:\+\+|--|\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)|\.(?:{changes})\()")
    found = collections.defaultdict(list)
    for path, text in product(tree).items():
        if not path.startswith("src/cache/"):
            continue
        code, room = code_of(text), path.split("/")[2]
        for match in (*before.finditer(code), *behind.finditer(code)):
            if room not in fields[match.group(1)] and ".counters." not in match.group(0):
                found[room, match.group(1)].append((path, code.count("\n", 0, match.start()) + 1))
    noted = {(room, name): most for room, names in FOREIGN_WRITES.items() for name, most in names.items()}
    for (room, name), places in found.items():
        if len(places) > noted.get((room, name), 0):
            rooms = ", ".join(sorted(fields[name]))
            yield *max(places), f"the room {room} writes {name} at {len(places)} places, at most {noted.get((room, name), 0)} " \
                f"may: call a function of {rooms}"
    for (room, name), most in noted.items():
        now = len(found.get((room, name), ()))
        if now < most:
            yield "tools/tidy.py", 1, f"the room {room} writes {name} at {now} places now: lower FOREIGN_WRITES"


def unit_of(path):
    """A header and its source are one unit, named without folder of headers and suffix."""
    return re.sub(r"\.[ch]pp$", "", re.sub(r"^include/eddy/", "src/", path))


def circles(links):
    """The groups of units in which each reaches every other, of more than one unit, by Tarjan's algorithm."""
    number, low, row, found = {}, {}, [], []
    for start in links:
        if start in number:
            continue
        path = [(start, iter(links[start]))]
        number[start] = low[start] = len(number)
        row.append(start)
        while path:
            at, rest = path[-1]
            following = next((unit for unit in rest if unit in links and number.get(unit) != -1), None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[at])
                if low[at] == number[at]:
                    group = row[row.index(at):]
                    del row[row.index(at):]
                    number.update((unit, -1) for unit in group)  # left: no link counts any more
                    if len(group) > 1:
                        found.append(sorted(group))
            elif following in number:
                low[at] = min(low[at], number[following])
            else:
                number[following] = low[following] = len(number)
                row.append(following)
                path.append((following, iter(links[following])))
    return found


def check_circles(tree):
    """No circle of units that include each other is larger than recorded, nor the record larger than the circle."""
    includes = [(path, tree.resolve(path, quote, name)) for path, _, quote, name in tree.includes()]
    # The source of a public header may stand in a room of its layer.
    rooms = {unit_of(path): unit_of(target) for path, target in includes
             if target and path.endswith(".cpp") and target.startswith("include/")
             and os.path.basename(unit_of(path)) == os.path.basename(unit_of(target))
             and path.split("/")[1] == unit_of(target).split("/")[1]}
    links = {rooms.get(unit_of(path), unit_of(path)): set() for path, _ in tree.cpp()
             if path.startswith(("src/", "include/")) and not path.endswith("_test.cpp")}
    for path, target in includes:
        if not target:
            continue
        source, target = (rooms.get(unit_of(end), unit_of(end)) for end in (path, target))
        if source in links and target in links and source != target:
            links[source].add(target)
    largest = {}
    for group in circles(links):
        layer = group[0].split("/")[1]
        largest[layer] = max(largest.get(layer, []), group, key=len)
    for layer, group in largest.items():
        most = LARGEST_CIRCLE.get(layer, LARGEST_CIRCLE_ELSEWHERE)
        if len(group) > most:
            units = ", ".join(unit.removeprefix(f"src/{layer}/") for unit in group)
            yield f"src/{layer}", 1, f"{len(group)} units include each other in a circle, at most {most} may: {units}"
        elif layer in LARGEST_CIRCLE and len(group) < most:
            yield "tools/tidy.py", 1, f"the largest circle of {layer} has {len(group)} units now: lower LARGEST_CIRCLE"


def check_libraries(tree):
    """Each third-party header has its place."""
    for path, number, quote, name in tree.includes():
        if path.startswith("bench/"):
            continue
        if KERNEL_QUEUES.match(name) and not path.startswith(("src/io/uring/", "src/io/epoll/")):
            yield path, number, f"only src/io/uring and src/io/epoll include {name}; use the loop"
        if quote == "<" and LUA.match(name) and not path.startswith("src/lua/"):
            yield path, number, f"only src/lua includes {name}; use lua/stack.hpp"
        if path.startswith(("include/", "src/")) and f"include/{name}" in OPTIONAL_HEADERS and not path.endswith("_test.cpp"):
            yield path, number, f"{name} is for programs that have the library it needs; ours do without"
        if path in OPTIONAL_HEADERS and name.startswith(OPTIONAL_HEADERS[path]):
            continue
        if path.startswith("include/") and THIRD_PARTY.match(name):
            yield path, number, f"a public header includes the third-party {name}; move it into a .cpp"
        elif path.endswith(".hpp") and name.startswith("fmt/"):
            yield path, number, f"{name} is for .cpp files: it doubles what every includer compiles"


def check_lua_calls(tree):
    """Lua's own functions are called in its layer alone, though lua/stack.hpp declares some for all."""
    for path, text in tree.cpp():
        if not path.startswith("src/") or path.startswith("src/lua/"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = LUA_CALL.search(line.split("//")[0])
            if match:
                yield path, number, f"only src/lua calls {match.group(0)[:-1]}(); use lua::stack"


def check_portable(tree):
    """Public headers keep to what libstdc++ 12, GCC 13 and libc++ share."""
    for path, text in tree.cpp():
        if not path.startswith("include/"):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            match = UNPORTABLE.search(line.split("//")[0])
            if match:
                yield path, number, f"{match.group(0)} is missing from a standard library that users have"


def check_dead(tree):
    """Every source is built, and every header is included."""
    lists = {os.path.dirname(p): t for p, t in tree.files.items() if os.path.basename(p) == "CMakeLists.txt"}
    lists = {folder: re.sub(r"#[^\n]*", "", text) for folder, text in lists.items()}
    for path, text in tree.cpp():
        if not path.endswith(".cpp"):
            continue
        folder, rest = os.path.dirname(path), os.path.basename(path)
        while True:
            listed = lists.get(folder, "")
            if re.search(r"(?<![\w./-])" + re.escape(rest) + r"(?![\w.-])", listed):
                break
            fuzz = re.fullmatch(r"(\w+)_fuzz\.cpp", rest)
            if fuzz and re.search(r"\beddy_fuzz\(\s*" + fuzz.group(1) + r"\b", listed):
                break
            if not folder:
                yield path, 1, "no CMakeLists.txt names this file: add it there, or remove it"
                break
            rest = os.path.basename(folder) + "/" + rest
            folder = os.path.dirname(folder)
    used = {tree.resolve(path, quote, name) for path, _, quote, name in tree.includes()}
    for path, text in tree.cpp():
        if path.endswith(".hpp") and path not in used:
            yield path, 1, "nobody includes this header: use it, or remove it"


def check_cpp_form(tree):
    """A C++ file opens with a comment that says what it is; a header is included once."""
    for path, text in tree.cpp():
        if not text.startswith("//"):
            yield path, 1, "the first line must be a comment (//) that says what the file is for"
        if path.endswith(".hpp") and not re.search(r"^#pragma once$", text, re.M):
            yield path, 1, "#pragma once is missing"


def check_text(tree):
    """No overlong file, tab, trailing space, unfinished mark or path of one machine."""
    for path, text in tree.files.items():
        lines = text.split("\n")
        most = MAX_CPP_LINES if path.endswith((".cpp", ".hpp")) else MAX_LINES
        if path.endswith(CODE) and len(lines) - 1 > most:
            yield path, len(lines) - 1, f"the file has over {most} lines: part it by subject"
        if text and not text.endswith("\n"):
            yield path, len(lines), "the last line does not end"
        for number, line in enumerate(lines, 1):
            if "\t" in line:
                yield path, number, "a tab: write spaces, or \\t in a string"
            if line != line.rstrip():
                yield path, number, "white space at the end of the line"
            mark = UNFINISHED.search(line)
            if mark:
                yield path, number, f"{mark.group(1)}: finish it, or say in a sentence what the limit is"
            if MACHINE_PATH.search(line):
                yield path, number, "a path of one machine"


def check_quotes(tree):
    """C++ and Java in a page is a part of the example that is named above it, which the build or a test compiles. It may
    stand further to the left.
    """
    for path, text in tree.files.items():
        if not path.endswith(".md") or not (path.startswith(("docs/", "java/")) or "/" not in path):
            continue
        for match in re.finditer(r"(?:<!-- (\S+) -->\n)?```(?:cpp|java)\n(.*?)^```$", text, re.M | re.S):
            number = text.count("\n", 0, match.start(2))
            source, code = match.groups()
            if not source:
                yield path, number, "no file is named above this code: <!-- examples/NAME.cpp -->"
            elif not any(textwrap.indent(code, " " * by) in tree.files.get(source, "") for by in (0, 4, 8)):
                yield path, number, f"this code is not in {source} as it stands here"
        for match in re.finditer(r"^ {4}.*(\bco_await\b|\bco_return\b|#include <eddy/)", unfenced(text), re.M):
            number = text.count("\n", 0, match.start()) + 1
            yield path, number, "C++ that nobody compiles: quote an example, in ```cpp"


def unfenced(text):
    """A page with its fenced code emptied; lines stay where they are."""
    return re.sub(r"^```.*?^```$", lambda match: "\n" * match.group(0).count("\n"), text, flags=re.M | re.S)


def check_openings(tree):
    """The code in a public header's comments is in an example, but for comments and white space.

    `...` stands for anything.
    """
    examples = [bare(text) for path, text in tree.cpp() if path.startswith("examples/")]
    for path, text in tree.files.items():
        if not path.startswith("include/"):
            continue
        opening = re.match(r"(?://.*\n)*", text).end()
        for match in re.finditer(r"(?:^ *(?:// {3,}|/// {4,})\S.*\n(?:^ *///?\n(?= *///? {4,}))?)+", text, re.M):
            if match.start() > opening and not match.group(0).lstrip().startswith("///"):
                continue  # for readers of the header's own code
            code = re.sub(r"^ *///?", "", match.group(0), flags=re.M)
            if not re.search(r"[;{]\s*(//.*)?$", code, re.M):
                continue  # no code: an address, a line of a log
            pattern = ".*?".join(map(re.escape, bare(code).split("...")))
            if not any(re.search(pattern, example) for example in examples):
                number = text.count("\n", 0, match.start()) + 1
                yield path, number, "no file of examples/ has this code, so nobody compiles it"


def bare(code):
    """C++ without comments and white space."""
    return re.sub(r"\s+", "", re.sub(r"(^|\s)//.*", "", code, flags=re.M))


def check_threads(tree):
    """A public header of the library says where Doxygen shows it, in `///`, which threads may use it: at each class, or for
    the whole file in a `/// \\file`. One without classes says it somewhere, such as at its namespace.
    """
    for path, text in tree.files.items():
        if not path.startswith("include/") or layer_of(path) not in THREADED:
            continue
        shown = hide_details(text)
        if any(THREADS.search(block) for block in re.findall(r"^/// \\file.*\n(?:///.*\n)*", shown, re.M)):
            continue
        classes = list(re.finditer(r"((?:^///[^\n]*\n)*)(?:^template <[^\n]*\n)*^class (?:\[\[\w+\]\] )?(\w+)\b(?!::|<)[^;{]*\{.*?^\};$",
                                   shown, re.M | re.S))
        if not classes and not THREADS.search(told(shown)):
            yield path, 1, "no `///` says which threads may use it: \"One loop's thread.\""
        for match in classes:
            # An operation is where its object is.
            if not match.group(2).endswith("_operation") and not THREADS.search(told(match.group(0))):
                number = text.count("\n", 0, match.start() + len(match.group(1))) + 1
                yield path, number, f"no `///` says which threads may use {match.group(2)}: \"One loop's thread.\""


def told(text):
    """Doxygen's comments, which begin with `///`."""
    return "\n".join(re.findall(r"///.*", text))


def hide_details(text):
    """A header without the namespace detail; lines stay where they are."""
    return re.sub(r"^namespace detail \{$.*?^\}  // namespace detail$",
                  lambda match: "\n" * match.group(0).count("\n"), text, flags=re.M | re.S)


def declarations(text):
    """Each line of a public header outside of details and private parts, with the `///` comment above it."""
    # Lines stay where they are; what is no part of the API becomes empty.
    hidden = re.sub(r"^namespace detail \{$.*?^\}  // namespace detail$|^(?:private|protected):$.*?^\};$",
                    lambda match: "\n" * match.group(0).count("\n"), text, flags=re.M | re.S)
    comment, lines = "", hidden.split("\n")
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("///"):
            comment += line
            continue
        if not is_deleted(lines[number - 1:]):
            yield number, line, comment
        if not line.lstrip().startswith(("template", "requires")):
            comment = ""


def check_awaited(tree):
    """The comment of a public function that is awaited says what the co_await yields."""
    for path, text in tree.files.items():
        if not path.startswith("include/"):
            continue
        for number, line, comment in declarations(text):
            if AWAITED.match(line) and not YIELDS.search(comment):
                yield path, number, "its comment does not say what co_await yields: \"Yields a result<T>: ...\""


def check_buffers(tree):
    """The comment of a public function that is awaited says how long the bytes, text or address given to it must live."""
    for path, text in tree.files.items():
        if not path.startswith("include/"):
            continue
        lines = text.split("\n")
        for number, line, comment in declarations(text):
            if AWAITED.match(line) and BORROWED.search(declaration(lines[number - 1:])) and not LIVES.search(comment):
                yield path, number, "its comment does not say how long what it is given must live: \"... must live until ...\""


def check_tour(tree):
    """docs/tour.md names each public header, and each class, struct and function of it."""
    tour = tree.files.get("docs/tour.md")
    if tour is None:
        return
    for path, text in tree.files.items():
        if not path.startswith("include/eddy/"):
            continue
        if f"<{path.removeprefix('include/')}>" not in tour:
            yield path, 1, "docs/tour.md does not name this header"
        for number, name in public_names(text):
            if not re.search(rf"(?<!\w){name}(?!\w)", tour):
                yield path, number, f"docs/tour.md does not name {name}"


def public_names(text):
    """The classes, structs and functions of a header, as (line, name): no details, members, operators, operations,
    drivers and declarations alone.
    """
    shown = re.sub(r"^namespace eddy::(?:\w+::)?detail \{$.*?^\}  // namespace eddy::(?:\w+::)?detail$|^ *template <[^\n]*>$",
                   lambda match: "\n" * match.group(0).count("\n"), hide_details(text), flags=re.M | re.S)
    for number, line in enumerate(shown.split("\n"), 1):
        match = re.match(r"(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^:].*)? ?\{?", line)
        if match:
            if not line.endswith(";") and not line.startswith(("struct std::", match.group(0) + "::")) \
                    and not match.group(1).endswith(("_operation", "_driver")):
                yield number, match.group(1)
            continue
        match = re.match(r"[a-zA-Z\[][^(=]*?\b(\w+)\(", line)
        if match and not re.search(r"\boperator\b|::\w+\($|^(?:static_assert|namespace|using|requires)\b", match.group(0)) \
                and not match.group(1).endswith("_driver"):
            yield number, match.group(1)


def check_errors(tree):
    """The comment of a public function that yields a result names its errors, or another function that does."""
    for path, text in tree.files.items():
        if not path.startswith("include/"):
            continue
        # An operation and a driver are for authors of io-backends.
        shown = re.sub(r"^class [\w:]+_(?:operation|driver)\b[^;{]*\{.*?^\};$",
                       lambda match: "\n" * match.group(0).count("\n"), text, flags=re.M | re.S)
        for number, line, comment in declarations(shown):
            if FALLIBLE.match(line) and not ERRORS.search(comment):
                yield path, number, "its comment does not say how it fails: \"Errors are ...\", errc::..., or \"The same ...\""


def is_deleted(lines):
    """True if the declaration that begins these lines ends in `= delete;`."""
    for line in lines:
        if line.endswith((";", "{", "}")):
            return line.endswith("delete;")
    return False


def declaration(lines):
    """The declaration that begins these lines, as one line."""
    end = next((i for i, line in enumerate(lines) if line.endswith((";", "{", "}"))), 0)
    return " ".join(lines[:end + 1])


def product(tree):
    """The C++ files that become the library and the program: no tests, nor headers that tests alone include."""
    reached = {}
    for path, _, quote, name in tree.includes():
        reached.setdefault(path, []).append(tree.resolve(path, quote, name))
    rest = [path for path, _ in tree.cpp()
            if path.startswith("include/") or (path.startswith("src/") and path.endswith(".cpp")
                                               and not path.endswith("_test.cpp") and "/testing/" not in path)]
    found = set()
    while rest:
        path = rest.pop()
        if path in tree.files and path not in found:
            found.add(path)
            rest.extend(target for target in reached.get(path, []) if target)
    return {path: tree.files[path] for path in sorted(found)}


RAW_STRING = re.compile(r'R"([^(\s]*)\(.*?\)\1"', re.S)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
NO_FUNCTION = re.compile(r"(?:template <.*> )?(?:inline )?(?:namespace|class|struct|enum|union|extern)\b|.*=\s*\{$|\{")


def code_of(text):
    """C++ without comments and the content of strings; lines stay where they are."""
    text = RAW_STRING.sub(lambda match: '""' + "\n" * match.group(0).count("\n"), text)
    return re.sub(r"//.*", "", STRING.sub('""', text))


def functions(text):
    """The functions with a body in C++ that clang-format has laid out, as (line, name, lines). One ends at the brace that
    stands as far to the left as its first line; a lambda is a part of the function around it.
    """
    lines = code_of(text).split("\n")
    at = 0
    while at < len(lines):
        start, head = at, ""
        while lines[at].lstrip().startswith("#") and lines[at].endswith("\\"):
            at += 1  # a macro
        # A declaration ends at one of these.
        while not lines[start].lstrip().startswith("#"):
            head += lines[at].strip() + " "
            if at + 1 == len(lines) or lines[at].rstrip().endswith((";", "{", "}", ":")) or not lines[at].strip():
                break
            at += 1
        at += 1
        name = re.search(r"(operator ?[^\w\s(]+|operator\(\)|~?[\w:~]+)\(", head)
        if not head.endswith("{ ") or not name or NO_FUNCTION.match(head.strip()):
            continue
        end = " " * (len(lines[start]) - len(lines[start].lstrip())) + "}"
        last = next((i for i in range(at, len(lines)) if lines[i].rstrip(" ;") == end), None)
        if last is not None:
            yield start + 1, name.group(1), last - start + 1
            at = last + 1


def check_functions(tree):
    """No function is longer than a page, but for the noted ones, which do not grow."""
    lengths = {}
    for path, text in product(tree).items():
        for line, name, lines in functions(text):
            if lines > lengths.get((path, name), (0, 0))[0]:
                lengths[path, name] = lines, line
    for (path, name), (lines, line) in lengths.items():
        most = LONG_FUNCTIONS.get((path, name), MAX_FUNCTION_LINES)
        if lines > most:
            yield path, line, f"{name} has {lines} lines, at most {most} may be: part it by what it does"
    for (path, name), most in LONG_FUNCTIONS.items():
        lines = lengths.get((path, name), (0, 0))[0]
        if lines <= max(most - 10, MAX_FUNCTION_LINES):
            yield "tools/tidy.py", 1, f"{name} of {path} is shorter now ({lines} lines): change LONG_FUNCTIONS"


def check_assertions(tree):
    """A layer's assertions do not become fewer for its lines; where they are more now, that is noted."""
    lines, asserts = {}, {}
    for path, text in product(tree).items():
        layer = layer_of(path)
        lines[layer] = lines.get(layer, 0) + text.count("\n")
        asserts[layer] = asserts.get(layer, 0) + len(re.findall(r"\bEDDY_ASSERT\(", code_of(text)))
    for layer, least in ASSERTIONS.items():
        if layer not in lines:
            continue
        now = 1000 * asserts[layer] / lines[layer]
        if now < least:
            yield f"src/{layer}", 1, f"{now:.2f} EDDY_ASSERT for 1,000 lines, at least {least} must be: assert what new code relies on"
        elif now >= least + ASSERTIONS_SLACK:
            yield "tools/tidy.py", 1, f"{layer} has {now:.2f} EDDY_ASSERT for 1,000 lines now: raise ASSERTIONS"


def check_throws(tree):
    """Exceptions never cross an I/O path: what can happen there is a result<T> or an outcome<T>."""
    found = {layer: [] for layer in THROWS}
    for path, text in product(tree).items():
        if layer_of(path) not in THROWS:
            continue
        for number, line in enumerate(code_of(text).split("\n"), 1):
            if re.search(r"\bthrow\b", line):
                found[layer_of(path)].append((path, number))
    for layer, places in found.items():
        if len(places) > THROWS[layer]:
            yield *places[-1], f"{layer} throws at {len(places)} places, at most {THROWS[layer]} may: return a result<T>"
        elif len(places) < THROWS[layer]:
            yield "tools/tidy.py", 1, f"{layer} throws at {len(places)} places now: lower THROWS"


CHECKS = (check_layers, check_rooms, check_folders, check_faces, check_state_writers, check_circles, check_libraries, check_lua_calls, check_portable,
          check_dead, check_cpp_form, check_text, check_functions, check_assertions, check_throws, check_quotes,
          check_openings, check_threads, check_awaited,
          check_buffers, check_errors, check_tour, check_words)


def check(root):
    """All faults of the tree at root, as sorted (path, line, message)."""
    tree = Tree(root)
    return sorted(fault for one in CHECKS for fault in one(tree)), len(tree.files)


def main(arguments):
    root = arguments[1] if len(arguments) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    faults, count = check(root)
    for path, number, message in faults:
        print(f"{path}:{number}: {message}")
    print(f"tidy: {count} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
