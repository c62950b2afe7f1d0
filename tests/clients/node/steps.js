// The steps of a client's program: each runs by itself and prints how it went (tests/clients/run.py).
'use strict';

const assert = require('node:assert/strict');
const net = require('node:net');
const readline = require('node:readline');
const tls = require('node:tls');

const port = Number(process.env.EDDY_CLIENT_PORT);
const ports = process.env.EDDY_CLIENT_PORTS.split(' ').map(Number);
const resp = Number(process.env.EDDY_CLIENT_RESP || 2);
// Node.js itself knows the authority, by NODE_EXTRA_CA_CERTS.
const secure = process.env.EDDY_CLIENT_CA !== undefined;
const scheme = secure ? 'rediss' : 'redis';
const deadlineMs = 30000;
let failed = 0;

class NotYet extends Error {}

function say(line) {
  process.stdout.write(line.replaceAll('\n', ' | ') + '\n');
}

async function eventually(condition, what) {
  const end = Date.now() + deadlineMs / 2;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// `promise` must be rejected with this text.
async function rejects(promise, text) {
  await assert.rejects(promise, (error) => {
    assert.ok(String(error.message).includes(text), `${error.message} has no ${text}`);
    return true;
  });
}

// Runs steps in turn: {name: function}.
async function run(version, steps) {
  say(`version ${version}`);
  for (const [name, body] of Object.entries(steps)) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not done in ${deadlineMs} ms`)), deadlineMs);
    });
    try {
      await Promise.race([body(), late]);
      say(`ok ${name}`);
    } catch (error) {
      if (error instanceof NotYet) {
        say(`not yet ${name}: ${error.message}`);
      } else {
        failed += 1;
        console.error(error);
        say(`FAILED ${name}: ${String(error.message).slice(0, 1500)}`);
      }
    } finally {
      clearTimeout(timer);
    }
  }
  process.exit(failed ? 1 : 0);
}

// True if the server has a command, or a subcommand as "script|load", asked without any library.
function hasCommand(name) {
  return new Promise((resolve, reject) => {
    const socket = (secure ? tls : net).connect(port, '127.0.0.1');
    // A subcommand without arguments changes nothing.
    const question = name.includes('|') ? name.replace('|', ' ') : `COMMAND INFO ${name}`;
    let reply = '';
    socket.on(secure ? 'secureConnect' : 'connect', () => socket.write(`${question}\r\nQUIT\r\n`));
    socket.on('data', (data) => { reply += data; });
    socket.on('end', () => resolve(!/^(-ERR unknown |\*1\r\n[*$]-1\r\n)/.test(reply)));
    socket.on('error', reject);
  });
}

async function needs(...commands) {
  for (const command of commands) {
    if (!await hasCommand(command)) {
      throw new NotYet(`the server has no ${command.toUpperCase().replace('|', ' ')}`);
    }
  }
}

let input;
function ask(what) {
  input ??= readline.createInterface({ input: process.stdin });
  return new Promise((resolve, reject) => {
    input.once('line', (line) => (line === 'done' ? resolve() : reject(new Error(`nobody did this: ${what}`))));
    say(`ask ${what}`);
  });
}
const restartServer = () => ask('restart');
const endLastServer = () => ask('end');

module.exports = {
  assert, endLastServer, eventually, needs, NotYet, port, ports, rejects, resp, restartServer, run, say, scheme, secure,
};
