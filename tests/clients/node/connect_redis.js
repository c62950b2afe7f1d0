// Sessions of Express in the cache: express-session on connect-redis on node-redis.
'use strict';

const express = require('express');
const session = require('express-session');
const { RedisStore } = require('connect-redis');
const { createClient } = require('redis');
const { version } = { version: require('node:fs').readFileSync(require.resolve('connect-redis').replace(/dist.*/, 'package.json'), 'utf8').match(/"version": "([^"]+)"/)[1] };
const { assert, eventually, port, restartServer, run } = require('./steps');

const client = createClient({ url: `redis://127.0.0.1:${port}` });
client.on('error', () => {});
const store = new RedisStore({ client, prefix: 'sess:', ttl: 100 });
let base;

async function visit(path, cookie) {
  const response = await fetch(base + path, { headers: cookie ? { cookie } : {} });
  return { status: response.status, text: await response.text(), cookie: response.headers.get('set-cookie')?.split(';')[0] };
}

const call = (name, ...args) => new Promise((resolve, reject) => {
  store[name](...args, (error, value) => (error ? reject(error) : resolve(value)));
});

run(version, {
  async start() {
    await client.connect();
    const app = express();
    app.use(session({ store, secret: 'eddy', resave: false, saveUninitialized: false }));
    app.get('/', (request, response) => {
      request.session.views = (request.session.views ?? 0) + 1;
      response.send(String(request.session.views));
    });
    app.get('/out', (request, response) => request.session.destroy(() => response.send('bye')));
    const server = await new Promise((resolve) => { const s = app.listen(0, '127.0.0.1', () => resolve(s)); });
    base = `http://127.0.0.1:${server.address().port}`;
  },
  async sessions() {
    const first = await visit('/');
    assert.equal(first.text, '1');
    assert.equal((await visit('/', first.cookie)).text, '2');
    assert.equal((await visit('/', first.cookie)).text, '3');
    assert.equal((await visit('/')).text, '1');
    assert.equal((await visit('/out', first.cookie)).text, 'bye');
    assert.equal((await visit('/', first.cookie)).text, '1');
  },
  async store() {
    await call('set', 'x', { cookie: { maxAge: 50000 }, user: 'ż' });
    assert.equal((await call('get', 'x')).user, 'ż');
    assert.ok(await client.ttl('sess:x') > 0);
    await call('touch', 'x', { cookie: {} });
    assert.ok(await call('length') >= 1);
    assert.ok((await call('ids')).includes('x'));
    assert.ok((await call('all')).some((each) => each.user === 'ż'));
    await call('destroy', 'x');
    assert.equal(await call('get', 'x') ?? null, null);
    await call('clear');
    assert.equal(await call('length'), 0);
  },
  async restart() {
    await restartServer();
    await eventually(async () => (await visit('/')).text === '1', 'a session after the restart');
  },
});
