// Redlock on ioredis: locks by a script on three servers, of which one ends.
'use strict';

const Redis = require('ioredis');
const Redlock = require('redlock');
const { version } = require('redlock/package.json');
const { assert, endLastServer, needs, ports, run } = require('./steps');

// A command on a server that is gone fails soon.
const clients = ports.map((port) => new Redis({ port, maxRetriesPerRequest: 1, retryStrategy: () => 50 }));
clients.forEach((client) => client.on('error', (error) => console.error(error)));
const locks = new Redlock(clients, { retryCount: 3, retryDelay: 20 });
locks.on('clientError', (error) => console.error(error));

run(version, {
  async lock() {
    await needs('eval');
    const lock = await locks.acquire(['resource'], 30000);
    await assert.rejects(locks.acquire(['resource'], 1000), { name: 'LockError' });
    const longer = await lock.extend(40000);
    assert.ok(await clients[0].pttl('resource') > 30000);
    await longer.unlock();
    assert.equal(await clients[0].exists('resource'), 0);
  },
  async 'several resources'() {
    await needs('eval');
    const lock = await locks.acquire(['a', 'b'], 30000);
    await assert.rejects(locks.acquire(['b'], 1000), { name: 'LockError' });
    await lock.unlock();
    await (await locks.acquire(['b'], 1000)).unlock();
  },
  async 'two of three servers'() {
    await needs('eval');
    const before = await locks.acquire(['kept'], 30000);
    await endLastServer();
    await assert.rejects(locks.acquire(['kept'], 1000), { name: 'LockError' });
    await before.unlock();
    const after = await locks.acquire(['kept'], 30000);
    for (const client of clients.slice(0, 2)) assert.equal(await client.exists('kept'), 1);
    await after.unlock();
  },
});
