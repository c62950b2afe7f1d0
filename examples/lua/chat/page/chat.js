// The page of the chat: a WebSocket to the server that the page came from, which connects again by itself.
"use strict";

const at = (id) => document.getElementById(id);
const most_lines = 500;
let socket;
let entered = null;

function add(kind, text, name) {
    const line = document.createElement("li");
    line.className = kind;
    if (name) line.append(Object.assign(document.createElement("b"), {textContent: name}));
    line.append(text);
    const list = at("messages");
    list.append(line);
    while (list.children.length > most_lines) list.firstChild.remove();
    line.scrollIntoView();
}

function show_members(message) {
    at("members").replaceChildren(...message.names.map(
        (name) => Object.assign(document.createElement("li"), {textContent: name})));
    at("text").placeholder = `Say something in ${message.room}`;
}

function set_usable(is_usable) {
    at("text").disabled = at("send").disabled = !is_usable;
}

function enter(door) {
    entered = door;
    socket.send(JSON.stringify({kind: "enter", ...door}));
    set_usable(true);
    at("text").focus();
}

function connect() {
    socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/`);
    socket.onopen = () => {
        at("state").textContent = "connected";
        if (entered) enter(entered);
    };
    socket.onmessage = (event) => {
        const message = JSON.parse(event.data);
        if (message.kind === "said") add("said", message.text, message.name);
        if (message.kind === "note") add("note", message.text);
        if (message.kind === "members") show_members(message);
    };
    socket.onclose = () => {
        at("state").textContent = "not connected; trying again …";
        set_usable(false);
        setTimeout(connect, 1000);
    };
}

at("door").onsubmit = (event) => {
    event.preventDefault();
    if (socket.readyState !== WebSocket.OPEN) return;
    at("messages").replaceChildren();
    enter({name: at("name").value, room: at("room").value});
};

at("words").onsubmit = (event) => {
    event.preventDefault();
    socket.send(JSON.stringify({kind: "say", text: at("text").value}));
    at("text").value = "";
};

connect();
