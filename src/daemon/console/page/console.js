// The console: runtimes of a daemon, as the control API shows them. Texts of the API become text nodes, never markup.
"use strict";

const period = 2000;      // of the figures, in milliseconds
const points = 60;        // that a plot has
const most_lines = 2000;  // of a log that stay on the page
const token_key = "eddy-token";

const by_id = (id) => document.getElementById(id);

// The token stands behind "#" once: it is kept for this tab, and taken out of the address.
if (location.hash.length > 1) {
  sessionStorage.setItem(token_key, location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}
const token = sessionStorage.getItem(token_key);

// --- The API ------------------------------------------------------------------------------------

async function ask(method, path, body, signal) {
  const request = { method, headers: { Authorization: `Bearer ${token}` }, signal };
  if (body !== undefined) request.body = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(path, request);
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try { message = JSON.parse(text).error.message; } catch { /* as it is */ }
  const failure = new Error(message || `HTTP ${response.status}`);
  failure.status = response.status;
  throw failure;
}

async function ask_json(method, path, body) {
  const response = await ask(method, path, body);
  return response.status === 204 ? null : response.json();
}

const path_of = (name, rest = "") => `/v1/runtimes/${encodeURIComponent(name)}${rest}`;

// --- Texts and elements -------------------------------------------------------------------------

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function amount(value) {
  if (!Number.isFinite(value)) return "–";
  for (const [least, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (value >= least) return (value / (unit === "k" ? 1e3 : least)).toFixed(1) + " " + unit;
  return value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
}

function bytes(value) {
  if (!Number.isFinite(value)) return "–";
  for (const [least, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (value >= least) return `${(value / least).toFixed(1)} ${unit}`;
  return `${value.toFixed(0)} B`;
}

function time(us) {
  if (!Number.isFinite(us)) return "–";
  if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
  return us >= 1e3 ? `${(us / 1e3).toFixed(1)} ms` : `${us.toFixed(0)} µs`;
}

function span(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  for (const [unit, of] of [["d", 86400], ["h", 3600], ["min", 60]])
    if (seconds >= of) return `${Math.floor(seconds / of)} ${unit}`;
  return `${Math.floor(seconds)} s`;
}

// --- Figures ------------------------------------------------------------------------------------

const plots = [
  { key: "rate", name: "Per second", show: amount },
  { key: "bytes", name: "Bytes/s", show: bytes },
  { key: "latency", name: "Mean time", show: time },
  { key: "connections", name: "Connections", show: amount },
  { key: "memory", name: "Memory", show: bytes },
];

/** Sums since the start, of which two make the figures of the time between them. */
function sums_of(stats) {
  const requests = Array.isArray(stats.requests_total)
    ? stats.requests_total.reduce((sum, each) => sum + each.value, 0) : undefined;
  const times = stats.request_seconds && !Array.isArray(stats.request_seconds) ? stats.request_seconds : stats.latency;
  return {
    at: performance.now() / 1000,
    count: requests ?? stats.messages_in,
    bytes: stats.bytes_in + stats.bytes_out,
    timed: times ? times.count : 0,
    time: times ? times.count * times.mean_us : 0,
    uptime: stats.uptime_s ?? 0,
  };
}

function figures_of(stats, before, now) {
  const memory = stats.used_memory_bytes ?? stats.memory_bytes;
  const made = { connections: stats.connections, memory: memory ?? NaN, rate: NaN, bytes: NaN, latency: NaN };
  // After a restart the sums begin anew.
  if (!before || now.uptime < before.uptime || now.count < before.count) return made;
  const passed = now.at - before.at;
  made.rate = (now.count - before.count) / passed;
  made.bytes = (now.bytes - before.bytes) / passed;
  if (now.timed > before.timed) made.latency = (now.time - before.time) / (now.timed - before.timed);
  return made;
}

function draw(canvas, values, label) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width === 0) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.setAttribute("aria-label", label);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const most = Math.max(...values.filter(Number.isFinite), 0) || 1;
  pen.strokeStyle = getComputedStyle(canvas).color;
  pen.lineWidth = 1.5;
  pen.beginPath();
  let is_down = false;
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) { is_down = false; return; }
    const x = width - (values.length - 1 - i) * (width / (points - 1));
    const y = height - 1.5 - (value / most) * (height - 4);
    if (is_down) pen.lineTo(x, y); else pen.moveTo(x, y);
    is_down = true;
  });
  pen.stroke();
}

// --- State --------------------------------------------------------------------------------------

const runtimes = new Map();  // by name: {shown, stats, sums, figures, past, row}
const sorting = { key: "name", falls: false };
let chosen = null;           // a name
let types = [];
let before_daemon = null;

function note_state(text) { by_id("state").textContent = text; }

async function refresh() {
  const [list, all] = await Promise.all([ask_json("GET", "/v1/runtimes"), ask_json("GET", "/v1/stats")]);
  const stats = new Map(all.stats.map((each) => [each.name, each]));
  const there = new Set();
  for (const shown of list.runtimes) {
    there.add(shown.name);
    const one = runtimes.get(shown.name) ?? { past: [] };
    const counted = stats.get(shown.name);
    one.shown = shown;
    if (counted) {
      const sums = sums_of(counted);
      one.figures = figures_of(counted, one.sums, sums);
      one.sums = sums;
      one.stats = counted;
      one.past.push(one.figures);
      if (one.past.length > points) one.past.shift();
    }
    runtimes.set(shown.name, one);
  }
  for (const [name, one] of runtimes) {
    if (there.has(name)) continue;
    one.row?.remove();
    runtimes.delete(name);
    if (chosen === name) close_one();
  }
  show_daemon(all.daemon);
  show_rows();
  if (chosen) show_one();
}

function show_daemon(now) {
  const at = performance.now() / 1000;
  const cpu = before_daemon ? (now.cpu_s - before_daemon.cpu_s) / (at - before_daemon.at) : NaN;
  before_daemon = { ...now, at };
  const facts = [["up", span(now.uptime_s)], ["memory", bytes(now.memory_bytes)],
    ["processor", Number.isFinite(cpu) ? `${(cpu * 100).toFixed(1)} %` : "–"], ["runtimes", runtimes.size]];
  by_id("facts").replaceChildren(...facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
}

function status_of(shown) { return shown.status === "running" && shown.reason ? "degraded" : shown.status; }

function sort_value(one, key) {
  if (key === "name" || key === "type" || key === "address") return one.shown[key] ?? "";
  if (key === "status") return status_of(one.shown);
  const value = one.figures?.[key];
  return Number.isFinite(value) ? value : -1;
}

function make_row(name) {
  const cells = ["name", "type", "status", "address", "connections", "rate", "bytes", "latency", "memory"].map((key, i) =>
    element("td", { className: key === "name" ? "name" : i > 3 ? "number" : "" }));
  const canvas = element("canvas", { role: "img" });
  const button = element("button", { onclick: () => choose(name) }, name);
  cells[0].append(button);
  return element("tr", {}, ...cells, element("td", {}, canvas));
}

function set_text(node, text) { if (node.textContent !== text) node.textContent = text; }

function show_rows() {
  const wanted = by_id("filter").value.trim().toLowerCase();
  const all = [...runtimes.values()].filter((one) => !wanted ||
    [one.shown.name, one.shown.type, one.shown.group].some((text) => text.toLowerCase().includes(wanted)));
  all.sort((a, b) => {
    const [x, y] = [sort_value(a, sorting.key), sort_value(b, sorting.key)];
    const order = typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
    return (sorting.falls ? -order : order) || a.shown.name.localeCompare(b.shown.name);
  });
  const body = by_id("rows");
  const rows = all.map((one) => one.row ??= make_row(one.shown.name));
  if (rows.length !== body.children.length || rows.some((row, i) => body.children[i] !== row)) {
    const focused = document.activeElement;
    body.replaceChildren(...rows);
    if (focused && body.contains(focused)) focused.focus();
  }
  for (const one of all) {
    const [, type, status, address, connections, rate, traffic, latency, memory] = one.row.children;
    const of = one.figures ?? {};
    set_text(type, one.shown.type);
    const state = status_of(one.shown);
    if (status.firstChild?.textContent !== state) status.replaceChildren(element("span", { className: `status ${state}` }, state));
    status.title = one.shown.reason ?? "";
    set_text(address, one.shown.address ?? "–");
    set_text(connections, amount(of.connections));
    set_text(rate, amount(of.rate));
    set_text(traffic, bytes(of.bytes));
    set_text(latency, time(of.latency));
    set_text(memory, bytes(of.memory));
    one.row.classList.toggle("chosen", one.shown.name === chosen);
    draw(one.row.lastChild.firstChild, one.past.map((each) => each.rate), `${amount(of.rate)} per second`);
  }
  by_id("empty").hidden = runtimes.size > 0;
}

// --- One runtime --------------------------------------------------------------------------------

let following = null;  // ends what the panel follows
let view = null;       // name of the open tab

function choose(name) {
  chosen = name;
  by_id("one").hidden = false;
  by_id("plots").replaceChildren(...plots.map(({ key, name: title }) => element("figure", { "data-key": key },
    element("figcaption", {}, element("span", {}, title), element("b")), element("canvas", { role: "img" }))));
  show_one();
  make_tabs();
  by_id("one-title").focus();
  by_id("one").scrollIntoView({ block: "nearest" });
}

function close_one() {
  chosen = null;
  following?.abort();
  by_id("one").hidden = true;
  for (const one of runtimes.values()) one.row?.classList.remove("chosen");
}

function show_one() {
  const one = runtimes.get(chosen);
  if (!one) return;
  const state = status_of(one.shown);
  set_text(by_id("one-title"), `${one.shown.name} – ${one.shown.type}${one.shown.address ? " on " + one.shown.address : ""}`);
  by_id("one-status").textContent = state;
  by_id("one-status").className = `status ${state}`;
  by_id("one-reason").hidden = !one.shown.reason;
  set_text(by_id("one-reason"), one.shown.reason ?? "");
  const runs = one.shown.status === "running";
  document.querySelector("[data-do=start]").disabled = runs;
  document.querySelector("[data-do=stop]").disabled = !runs && one.shown.status !== "starting";
  document.querySelector("[data-do=reload]").disabled = !runs;
  for (const { key, name, show } of plots) {
    const figure = document.querySelector(`figure[data-key=${key}]`);
    const values = one.past.map((each) => each[key]);
    figure.hidden = !values.some(Number.isFinite);
    set_text(figure.querySelector("b"), show(values.at(-1) ?? NaN));
    draw(figure.querySelector("canvas"), values, `${name}: ${show(values.at(-1) ?? NaN)}`);
  }
  if (view === "Counters") show_counters(one);
}

function views_of(shown) {
  const views = ["Log", "Options", "Counters"];
  if (shown.type === "cache") views.push("Prompt");
  if (shown.type === "client") views.push("Messages");
  if (shown.type === "server") views.push("WebSocket");
  return views;
}

function make_tabs() {
  const views = views_of(runtimes.get(chosen).shown);
  const tabs = views.map((name) => element("button", {
    role: "tab", id: `tab-${name}`, "aria-controls": "panel", onclick: () => open_view(name),
  }, name));
  by_id("tabs").replaceChildren(...tabs);
  by_id("tabs").onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  };
  open_view(views.includes(view) ? view : "Log");
}

function open_view(name) {
  view = name;
  for (const tab of by_id("tabs").children) {
    tab.setAttribute("aria-selected", String(tab.textContent === name));
    tab.tabIndex = tab.textContent === name ? 0 : -1;
  }
  by_id("panel").setAttribute("aria-labelledby", `tab-${name}`);
  following?.abort();
  following = new AbortController();
  const one = runtimes.get(chosen);
  const panel = by_id("panel");
  panel.replaceChildren();
  if (name === "Log") show_stream(panel, path_of(chosen, "/logs?follow=true&tail=200"), "Log");
  else if (name === "Options") show_options(panel, one.shown);
  else if (name === "Counters") show_counters(one);
  else if (name === "Prompt") show_prompt(panel);
  else if (name === "Messages") show_messages(panel);
  else show_socket(panel, one.shown);
}

/** A log that keeps its end in sight, unless its reader has scrolled away from it. */
function make_log(label) {
  const log = element("pre", { role: "log", tabIndex: 0, "aria-label": label });
  log.add = (text) => {
    const at_end = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
    log.append(text);
    while (log.childNodes.length > most_lines) log.firstChild.remove();
    if (at_end) log.scrollTop = log.scrollHeight;
  };
  return log;
}

async function show_stream(panel, path, label) {
  const log = make_log(label);
  panel.append(log);
  const { signal } = following;
  try {
    const response = await ask("GET", path, undefined, signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const line of value.split(/(?<=\n)/)) log.add(line);
    }
  } catch (failure) {
    if (!signal.aborted) log.add(`${failure.message}\n`);
  }
}

function pairs(list) {
  return element("table", {}, element("tbody", {}, ...list.map(([name, value]) =>
    element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)))));
}

function show_options(panel, shown) {
  const facts = [["id", shown.id], ["created", shown.created], ["owner", shown.owner || "–"], ["group", shown.group || "–"],
    ["loop", String(shown.loop ?? "–")]];
  for (const [name, value] of Object.entries(shown.options))
    facts.push([`--${name.replaceAll("_", "-")}`, typeof value === "string" ? value : JSON.stringify(value)]);
  panel.append(element("div", { className: "wide" }, pairs(facts)));
}

function show_counters(one) {
  const list = [];
  const add = (name, value) => {
    if (value === null || value === undefined) return;
    if (Array.isArray(value))
      for (const each of value) add(`${name} ${Object.values(each.labels).join(" ")}`, each.value);
    else if (typeof value === "object")
      for (const [part, of] of Object.entries(value)) add(`${name} ${part}`, of);
    else list.push([name.replaceAll("_", " "), typeof value === "number" ? value.toLocaleString() : String(value)]);
  };
  for (const [name, value] of Object.entries(one.stats ?? {}))
    if (!["name", "type", "status"].includes(name)) add(name, value);
  by_id("panel").replaceChildren(element("div", { className: "wide" }, pairs(list)));
}

function make_prompt(label, send, word) {
  const input = element("input", { type: "text", autocomplete: "off", spellcheck: false, "aria-label": label });
  const past = [];
  let at = 0;
  input.onkeydown = (event) => {
    if (event.key === "Enter" && input.value) {
      past.push(input.value);
      at = past.length;
      send(input.value);
      input.value = "";
    } else if (event.key === "ArrowUp" && at > 0) {
      input.value = past[--at];
      event.preventDefault();
    } else if (event.key === "ArrowDown" && at < past.length) {
      input.value = past[++at] ?? "";
      event.preventDefault();
    }
  };
  const button = element("button", { onclick: () => {
    if (!input.value) return;
    send(input.value);
    input.value = "";
    input.focus();
  } }, word);
  return element("div", { className: "prompt" }, input, button);
}

/** Words as a shell has them: "two words" and 'two words' are one. */
function words_of(line) {
  const words = [];
  for (const [, twice, once, plain] of line.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|(\S+)/g))
    words.push(twice !== undefined ? twice.replace(/\\(.)/g, (_, c) => ({ n: "\n", t: "\t", r: "\r" })[c] ?? c) : once ?? plain);
  return words;
}

function reply_text(reply, indent = "") {
  if (reply === null) return "(nil)";
  if (typeof reply === "number") return `(integer) ${reply}`;
  if (typeof reply === "string") return JSON.stringify(reply);
  if (!Array.isArray(reply)) return `(error) ${reply.error}`;
  if (reply.length === 0) return "(empty)";
  return reply.map((each, i) => `${i ? indent : ""}${i + 1}) ${reply_text(each, indent + "   ")}`).join("\n");
}

function show_prompt(panel) {
  const log = make_log("Commands and replies");
  const name = chosen;
  let last = Promise.resolve();  // commands run in their order
  const send = (line) => { last = last.then(() => run(line)); };
  const run = async (line) => {
    log.add(`> ${line}\n`);
    try {
      const { reply } = await ask_json("POST", path_of(name, "/command"), { command: words_of(line) });
      log.add(`${reply_text(reply)}\n`);
    } catch (failure) {
      log.add(`(error) ${failure.message}\n`);
    }
  };
  panel.append(log, make_prompt("Command for the cache, such as GET key", send, "Run"));
}

function show_messages(panel) {
  const name = chosen;
  show_stream(panel, path_of(name, "/messages"), "Messages that it receives");
  const log = panel.querySelector("pre");
  const send = (text) => ask("POST", path_of(name, "/send"), text).catch((failure) => log.add(`${failure.message}\n`));
  panel.append(make_prompt("Message to its server", send, "Send"));
}

function show_socket(panel, shown) {
  const log = make_log("Messages");
  const scheme = shown.options.tls ? "wss" : "ws";
  const address = element("input", { type: "text", value: `${scheme}://127.0.0.1:${shown.port ?? ""}/`, "aria-label": "Address of the WebSocket" });
  let socket = null;
  const connect = element("button", {}, "Connect");
  connect.onclick = () => {
    if (socket) { socket.close(); return; }
    try { socket = new WebSocket(address.value); } catch (failure) { log.add(`${failure.message}\n`); return; }
    connect.textContent = "Disconnect";
    let was_open = false;
    socket.onopen = () => { was_open = true; log.add("– connected\n"); };
    socket.onmessage = (event) => log.add(`< ${typeof event.data === "string" ? event.data : "(binary)"}\n`);
    socket.onclose = (event) => {
      log.add(`– closed (${event.code}${event.reason ? ": " + event.reason : ""})\n`);
      if (!was_open)
        log.add(`– servers admit pages of other ports by --origins: eddy edit ${shown.name} --origins ${location.origin}\n`);
      connect.textContent = "Connect";
      socket = null;
    };
  };
  following.signal.addEventListener("abort", () => socket?.close());
  const send = (text) => {
    if (socket?.readyState !== WebSocket.OPEN) { log.add("– not connected\n"); return; }
    socket.send(text);
    log.add(`> ${text}\n`);
  };
  const to_all = (text) => ask_json("POST", path_of(shown.name, "/send"), text)
    .then((sent) => log.add(`– sent to ${sent.delivered}\n`)).catch((failure) => log.add(`${failure.message}\n`));
  panel.append(element("div", { className: "prompt" }, address, connect), log,
    make_prompt("Message of this WebSocket", send, "Send"), make_prompt("Message to all clients", to_all, "Send to all"));
}

// --- Changes ------------------------------------------------------------------------------------

/** Opens the dialog; `act` is called for OK, and its error is shown until another attempt or Cancel. */
function open_form(title, fields, word, act) {
  const form = by_id("form");
  const error = by_id("form-error");
  by_id("form-title").textContent = title;
  by_id("form-fields").replaceChildren(...fields);
  error.hidden = true;
  const ok = by_id("form-ok");
  ok.textContent = word;
  form.querySelector("form").onsubmit = async (event) => {
    if (event.submitter !== ok) return;
    event.preventDefault();
    ok.disabled = true;
    try {
      if (await act() !== false) form.close();
    } catch (failure) {
      error.textContent = failure.message;
      error.hidden = false;
    } finally {
      ok.disabled = false;
    }
    await refresh().catch(() => {});
  };
  form.showModal();
}

function field(label, input, help) {
  input.id ||= `field-${label}`;
  return element("div", { className: "field" }, element("label", { htmlFor: input.id }, label), input,
    ...(help ? [element("small", {}, help)] : []));
}

function input_of(option, value) {
  if (option.kind === "flag") return element("input", { type: "checkbox", checked: value === true });
  if (option.kind === "choice")
    return element("select", {}, element("option", { value: "" }, option.default ? `${option.default} (default)` : "–"),
      ...option.choices.map((each) => element("option", { value: each, selected: each === value }, each)));
  if (option.kind === "list")
    return element("textarea", { rows: 2, value: Array.isArray(value) ? value.join("\n") : value ?? "", placeholder: "one a line" });
  return element("input", { type: option.kind === "integer" ? "number" : "text", value: value ?? "", placeholder: option.default ?? "",
    autocomplete: "off", spellcheck: false });
}

function value_of(option, input) {
  if (option.kind === "flag") return input.checked ? true : null;
  if (input.value.trim() === "") return null;
  if (option.kind === "integer") return Number(input.value);
  if (option.kind === "list") return input.value.split("\n").map((each) => each.trim()).filter(Boolean);
  return input.value;
}

/** Fields of a type's options; the ones that most need come first. */
function option_fields(type, values) {
  const first = ["port", "bind", "root", "backend", "target", "handoff", "protocol", "lua", "command"];
  const inputs = new Map();
  const make = (option) => {
    const input = input_of(option, values[option.name]);
    inputs.set(option, input);
    return field(`--${option.name.replaceAll("_", "-")}`, input, option.help);
  };
  const is_first = (option) => first.includes(option.name) || option.name in values;
  const fields = type.options.filter(is_first).map(make);
  const rest = element("details", {}, element("summary", {}, "More options"),
    ...type.options.filter((option) => !is_first(option)).map(make));
  return { fields: [...fields, rest], inputs };
}

function open_create() {
  const name = element("input", { type: "text", required: true, pattern: "[A-Za-z0-9_.\\-]{1,128}", autocomplete: "off" });
  const type = element("select", {}, ...types.map((each) => element("option", {}, each.name)));
  const group = element("input", { type: "text", autocomplete: "off" });
  const starts = element("input", { type: "checkbox", checked: true });
  const place = element("div");
  let current = null;
  const show_type = () => {
    const of = types.find((each) => each.name === type.value);
    current = option_fields(of, {});
    place.replaceChildren(element("p", {}, of.summary), ...current.fields);
  };
  type.onchange = show_type;
  show_type();
  open_form("Create a runtime", [field("Name", name), field("Type", type), field("Group", group),
    field("Start it", starts), place], "Create", async () => {
    const options = {};
    for (const [option, input] of current.inputs) {
      const value = value_of(option, input);
      if (value !== null) options[option.name] = value;
    }
    await ask_json("POST", "/v1/runtimes", { name: name.value, type: type.value, group: group.value, start: starts.checked, options });
    await refresh();
    choose(name.value);
  });
}

function open_edit(shown) {
  const { fields, inputs } = option_fields(types.find((each) => each.name === shown.type), shown.options);
  let asked = "";
  open_form(`Edit ${shown.name}`, fields, "Apply", async () => {
    const options = {};
    for (const [option, input] of inputs) {
      const value = value_of(option, input);
      if (JSON.stringify(value) !== JSON.stringify(shown.options[option.name] ?? null) &&
          !(option.kind !== "list" && String(value) === String(shown.options[option.name] ?? null)))
        options[option.name] = value;
    }
    const body = JSON.stringify({ options });
    if (asked !== body) {
      const plan = await ask_json("PATCH", path_of(shown.name, "?dry_run=true"), body);
      asked = body;
      if (plan.effect === "restarted") {
        const names = plan.restart.options.map((each) => `--${each.replaceAll("_", "-")}`).join(", ");
        throw new Error(`Changing ${names} restarts ${shown.name}. Apply again to do it.`);
      }
    }
    await ask_json("PATCH", path_of(shown.name), body);
  });
}

function open_remove(shown) {
  const owned = [];
  const add = (owner) => {
    for (const each of runtimes.values())
      if (each.shown.owner && each.shown.owner === owner) { owned.push(each.shown.name); add(each.shown.name); }
  };
  add(shown.name);
  const text = [`${shown.name} is stopped and deleted`, owned.length ? `, and so is what it owns: ${owned.join(", ")}` : "",
    shown.type === "cache" ? ". Keys that are in memory alone are lost." : "."].join("");
  const force = element("input", { type: "checkbox" });
  open_form(`Remove ${shown.name}?`, [element("p", {}, text), field("Even if data is lost", force)], "Remove", async () => {
    await ask("DELETE", path_of(shown.name, force.checked ? "?force=true" : ""));
  });
}

async function act(what) {
  const { shown } = runtimes.get(chosen);
  if (what === "close") { close_one(); return; }
  if (what === "edit") { open_edit(shown); return; }
  if (what === "remove") { open_remove(shown); return; }
  try {
    await ask("POST", path_of(shown.name, `/${what}`));
    note_state("");
  } catch (failure) {
    note_state(failure.message);
  }
  await refresh().catch(() => {});
}

// --- Begin --------------------------------------------------------------------------------------

async function keep_current() {
  for (;;) {
    if (!document.hidden) {
      try {
        await refresh();
        if (by_id("state").dataset.away) { note_state(""); delete by_id("state").dataset.away; }
      } catch (failure) {
        by_id("state").dataset.away = "yes";
        note_state(failure.status === 401 ? "This token is no longer valid: run `eddy console` again"
          : failure.status ? failure.message : "The daemon does not answer");
        if (failure.status === 401) return;
      }
    }
    await new Promise((done) => setTimeout(done, period));
  }
}

async function begin() {
  if (!token) {
    by_id("no-token").hidden = false;
    return;
  }
  by_id("console").hidden = false;
  by_id("filter").oninput = show_rows;
  by_id("create").onclick = open_create;
  for (const button of document.querySelectorAll("[data-do]")) button.onclick = () => act(button.dataset.do);
  for (const button of document.querySelectorAll("[data-sort]")) {
    button.onclick = () => {
      sorting.falls = sorting.key === button.dataset.sort ? !sorting.falls : button.closest("th").className === "number";
      sorting.key = button.dataset.sort;
      for (const th of document.querySelectorAll("th[aria-sort]")) th.removeAttribute("aria-sort");
      button.closest("th").setAttribute("aria-sort", sorting.falls ? "descending" : "ascending");
      show_rows();
    };
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh().catch(() => {}); });
  try {
    const [daemon, all] = await Promise.all([ask_json("GET", "/v1/daemon"), ask_json("GET", "/v1/types")]);
    types = all.types;
    by_id("daemon-name").textContent = `${daemon.name ?? ""} ${daemon.version}`.trim();
    document.title = `Eddy ${daemon.name ?? ""}`.trim();
  } catch (failure) {
    note_state(failure.status === 401 ? "This token is not valid: run `eddy console` again" : failure.message);
    return;
  }
  await keep_current();
}

begin();
