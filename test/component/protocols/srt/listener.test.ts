import { fork } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { srtOptions } from '../../../../src/lib/srt-options.ts';
import type { SrtConnection } from '../../../../src/protocols/srt/connection.ts';
import { ListenError } from '../../../../src/core/listen-error.ts';
import { SrtError } from '../../../../src/protocols/srt/error.ts';
import { listenPlaces, SrtListener, type SrtListenOptions } from '../../../../src/protocols/srt/listener.ts';
import { SrtRuntime } from '../../../../src/protocols/srt/runtime.ts';
import type { SrtStatistics } from '../../../../src/protocols/srt/statistics.ts';
import { SrtCaller } from '../../../support/srt/caller.ts';
import { CONTROL, control, RawCaller } from '../../../support/srt/raw-caller.ts';
import { until } from '../../../support/time/until.ts';

const log = pino({ level: 'silent' });
const BAD_SECRET = 10;
const UNSECURE = 11;
const MESSAGE = 1316;

interface Taken {
  readonly connection: SrtConnection;
  bytes: number;
  closed: string | undefined;
}

/** A listener that reads from everybody whose stream id is not a number: that is the reason to be refused for. */
function listen(t: ExecutionContext, more: Partial<SrtListenOptions> & { readonly reads?: boolean } = {}) {
  const runtime = SrtRuntime.open(log);
  const taken: Taken[] = [];
  const calls: string[] = [];
  const { reads = true, ...options } = more;
  const listener = new SrtListener(runtime, {
    host: '127.0.0.1',
    port: 0,
    options: [],
    log,
    refuse: ({ streamId, peer }) => {
      calls.push(`${peer.address} ${streamId}`);
      return /^\d+$/.test(streamId) ? Number(streamId) : undefined;
    },
    connection: (connection) => {
      const one: Taken = { connection, bytes: 0, closed: undefined };
      taken.push(one);
      connection.handlers = {
        data: (bytes) => void (one.bytes += bytes.length),
        close: (reason) => void (one.closed = reason),
      };
      if (reads) connection.read();
    },
    ...options,
  });
  const close = async (): Promise<void> => {
    await listener.close();
    for (const { connection } of taken) connection.close();
    await runtime.close();
  };
  t.teardown(close);
  return { listener, taken, calls, close };
}

test.serial('callers are admitted, or rejected for a reason that they receive', async (t) => {
  const { listener, taken, calls } = listen(t);
  const caller = new SrtCaller(t);
  const first = await caller.call(listener.port, { streamId: 'default/app/talk' });
  t.is(first.refused, 0);
  t.is((await caller.call(listener.port, { streamId: '1404' })).refused, 1404);
  t.is((await caller.call(listener.port, { streamId: '1409' })).refused, 1409);
  t.true(calls.includes('127.0.0.1 default/app/talk'));
  await until('accepted', () => taken.length === 1);
  const { connection } = taken[0] as Taken;
  t.is(connection.streamId, 'default/app/talk');
  t.is(connection.peer.address, '127.0.0.1');
  t.deepEqual(connection.local, { address: '127.0.0.1', port: listener.port });

  await first.send(Buffer.alloc(40 * MESSAGE, 0x47));
  await until('everything came', () => taken[0]?.bytes === 40 * MESSAGE);
  await first.close();
  await until('it was told', () => taken[0]?.closed === 'the connection is gone');
});

test.serial('the statistics of an SRT connection are reported when it is closed', async (t) => {
  const { listener, taken } = listen(t);
  const caller = new SrtCaller(t);
  const { send } = await caller.call(listener.port);
  await send(Buffer.alloc(40 * MESSAGE, 0x47));
  await until('everything came', () => taken[0]?.bytes === 40 * MESSAGE);
  const counted = await new Promise<SrtStatistics | undefined>((told) => taken[0]?.connection.close(told));
  t.like(counted, { received: { packets: 40, lost: 0, dropped: 0 }, sent: { packets: 0 } });
  t.true((counted?.rtt ?? -1) >= 0);

  const counting = Promise.withResolvers<void>();
  const second = await caller.call(listener.port);
  await until('accepted', () => taken.length === 2);
  const told = new Promise<SrtStatistics | undefined>((resolve) => {
    const { connection } = taken[1] as Taken;
    connection.handlers = { counted: () => counting.resolve(), close: () => connection.close(resolve) };
  });
  await counting.promise;
  await second.close();
  t.like(await told, { received: { packets: 0 } }, 'what was counted last');
});

test.serial('an exception in the decision refuses the caller', async (t) => {
  const { listener } = listen(t, {
    refuse: () => {
      throw new Error('broken');
    },
  });
  t.is((await new SrtCaller(t).call(listener.port)).refused, 1500);
});

test.serial('IPv6 beside IPv4 on one port, by address or for every one', async (t) => {
  const caller = new SrtCaller(t);
  const four = listen(t);
  const six = listen(t, { host: '::1', port: four.listener.port });
  t.is((await caller.call(four.listener.port, { streamId: 'four' })).refused, 0);
  t.is((await caller.call(six.listener.port, { host: '::1', streamId: 'six' })).refused, 0);
  t.deepEqual([...four.calls, ...six.calls], ['127.0.0.1 four', '::1 six']);

  const [place = { host: '' }, ...more] = listenPlaces(['*', '::']);
  t.deepEqual(more, []);
  const both = listen(t, place);
  t.is((await caller.call(both.listener.port, { streamId: 'four' })).refused, 0);
  t.is((await caller.call(both.listener.port, { host: '::1', streamId: 'six' })).refused, 0);
  t.deepEqual(both.calls, ['127.0.0.1 four', '::1 six']);
  t.deepEqual(listenPlaces(['127.0.0.1', '::']), [{ host: '127.0.0.1' }, { host: '::' }]);
});

test.serial('an SRT listener on a port in use fails with an error that names the port', async (t) => {
  const other = createSocket('udp4');
  await new Promise<void>((resolve) => other.bind(0, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  const { port } = other.address();
  const runtime = SrtRuntime.open(log);
  t.teardown(() => runtime.close());
  const refuse = (): undefined => undefined;
  const error = t.throws(
    () =>
      new SrtListener(runtime, {
        host: '127.0.0.1',
        port,
        options: [],
        log,
        refuse,
        connection: () => {},
      }),
    { instanceOf: ListenError },
  );
  t.like(error, { code: 'EADDRINUSE', syscall: 'bind', address: '127.0.0.1', port });
  const filter = srtOptions([{ key: 'SRTO_PACKETFILTER', value: 'none such' }]);
  t.throws(
    () =>
      new SrtListener(runtime, {
        host: '127.0.0.1',
        port: 0,
        options: filter,
        log,
        refuse,
        connection: () => {},
      }),
    { instanceOf: SrtError, message: /^libsrt refuses SRTO_PACKETFILTER: / },
  );
});

test.serial('a passphrase: the right one, a wrong one and none', async (t) => {
  const { listener, taken, calls } = listen(t, {
    options: srtOptions([
      { key: 'SRTO_PASSPHRASE', value: 'a long enough secret' },
      { key: 'SRTO_PBKEYLEN', value: '32' },
      { key: 'SRTO_LATENCY', value: '20' },
    ]),
  });
  const caller = new SrtCaller(t);
  t.is((await caller.call(listener.port, { passphrase: 'another long secret' })).refused, BAD_SECRET);
  t.is((await caller.call(listener.port)).refused, UNSECURE);
  const right = await caller.call(listener.port, { passphrase: 'a long enough secret' });
  t.is(right.refused, 0);
  await right.send(Buffer.alloc(10 * MESSAGE, 1));
  await until('it is read', () => taken.some(({ bytes }) => bytes === 10 * MESSAGE));
  t.true(calls.length > 0);
});

test.serial('a slow reader makes the sender wait, and a broken one is reported', async (t) => {
  const { listener, taken } = listen(t, { options: srtOptions([{ key: 'SRTO_SNDBUF', value: String(64 * MESSAGE) }]) });
  const caller = new SrtCaller(t);
  const viewer = await caller.call(listener.port, { streamId: 'view' });
  await until('accepted', () => taken.length === 1);
  const { connection } = taken[0] as Taken;
  let writable = 0;
  let gone: string | undefined;
  connection.handlers = { writable: () => void writable++, close: (reason) => void (gone = reason) };
  const message = Buffer.alloc(MESSAGE, 0x47);
  let sent = 0;
  while (connection.send(message)) sent++;
  t.true(sent > 0 && sent <= 128, `${sent} messages fit`);
  await until('there is room again', () => writable > 0);
  t.true(connection.send(message));
  let received = 0;
  await until('everything came', async () => {
    received += await viewer.receive();
    return received === (sent + 1) * MESSAGE;
  });
  await caller.kill();
  await until('its end is seen', () => gone !== undefined);
  t.true(connection.send(message), 'what goes to nobody is gone');
});

test.serial('a close waits neither for callers nor for callbacks, and reports connected ones', async (t) => {
  const { listener, taken, close } = listen(t);
  const caller = new SrtCaller(t);
  const calls = Array.from({ length: 6 }, (_, i) =>
    caller.call(listener.port, { streamId: i % 2 === 0 ? 'in' : '1404' }),
  );
  await until('some are in', () => taken.length > 0);
  // what was called in the meantime waits for this thread
  const end = performance.now() + 200;
  while (performance.now() < end);
  await close();
  const outcomes = await Promise.all(calls);
  t.true(outcomes.some(({ refused }) => refused === 0));
  for (const { connected } of outcomes) await until('nobody is connected', async () => !(await connected()));
});

test.serial('callers that are no callers, and wild datagrams, leave it at work', async (t) => {
  const { listener, taken } = listen(t);
  const socket = createSocket('udp4');
  t.teardown(() => socket.close());
  for (let i = 0; i < 3000; i++) {
    const datagram = Buffer.from(Array.from({ length: (i * 7) % 200 }, (_, at) => (i * 31 + at * 17) & 0xff));
    if (i % 3 === 0 && datagram.length >= 64) {
      // a handshake of SRT, as far as its first bytes go
      datagram.fill(0, 0, 16);
      datagram.writeUInt32BE(0x80000000, 0);
      datagram.writeUInt32BE(i % 2 === 0 ? 4 : 5, 16);
    }
    await new Promise((resolve) => socket.send(datagram, listener.port, '127.0.0.1', resolve));
  }
  const caller = new SrtCaller(t);
  t.not((await caller.call(listener.port, { streamId: 'x', rendezvous: true })).refused, 0);
  t.is((await caller.call(listener.port, { streamId: 'x' })).refused, 0);
  await until('one is in', () => taken.length === 1);
});

/** Each could hold up the port for a second. */
const HOSTILE = 8;
const HOLD_UPS: Record<string, (socket: number) => Buffer> = {
  'a short acknowledgement of what was never sent': (socket) => control(CONTROL.ack, socket, 1000 + 2 ** 30 - 2),
  'an acknowledgement of what was never sent': (socket) =>
    control(CONTROL.ack, socket, 1000 + 2 ** 30 - 2, 100, 50, 8192, 0, 0, 0),
  'a request to drop all there can be': (socket) => control(CONTROL.dropRequest, socket, 1, 0x7fff_fffe),
};

for (const [what, packet] of Object.entries(HOLD_UPS)) {
  for (const sends of [false, true]) {
    test.serial(`${what} holds up no other caller, where something is sent: ${sends}`, async (t) => {
      const { listener, taken } = listen(t);
      const other = await RawCaller.open(listener.port);
      const hostile = await Promise.all(Array.from({ length: HOSTILE }, () => RawCaller.open(listener.port)));
      t.teardown(() => [other, ...hostile].forEach((caller) => caller.close()));
      const sockets = await Promise.all(hostile.map((caller) => caller.connect()));
      await until('accepted', () => taken.length === HOSTILE);
      if (sends) for (const { connection } of taken) t.true(connection.send(Buffer.alloc(MESSAGE)));
      await Promise.all(hostile.map((caller, i) => caller.send(packet(sockets[i] ?? 0))));
      t.not(await other.connect(), undefined, 'it is answered');
    });
  }
}

test.serial('handshakes that no libsrt sends are not answered, and break nothing', async (t) => {
  const { listener } = listen(t);
  const odd = [
    { packetBytes: 76 },
    { packetBytes: 200 },
    { packetBytes: 0xffff_ffff },
    { window: 1 },
    { window: 0x4000_0000 },
    { sequence: 0xc000_0000 },
  ];
  const callers = await Promise.all(odd.map(() => RawCaller.open(listener.port)));
  t.teardown(() => callers.forEach((caller) => caller.close()));
  const sockets = await Promise.all(callers.map((caller, i) => caller.connect(odd[i])));
  t.deepEqual(
    sockets,
    odd.map(() => undefined),
  );
  t.is((await new SrtCaller(t).call(listener.port)).refused, 0);
});

test.serial('callers who are disconnected as soon as they are in hear of it', async (t) => {
  const { listener } = listen(t, { connection: (connection) => connection.close() });
  const callers = Array.from({ length: 4 }, () => new SrtCaller(t));
  for (let round = 0; round < 4; round++) {
    const calls = await Promise.all(callers.map((caller) => caller.call(listener.port)));
    t.deepEqual(
      calls.map(({ refused }) => refused),
      calls.map(() => 0),
    );
    await until('they hear of it', async () =>
      (await Promise.all(calls.map(({ connected }) => connected()))).every((is) => !is),
    );
  }
});

test.serial('connections that end while no caller waits for them are noticed', async (t) => {
  const { listener, taken } = listen(t);
  const caller = new SrtCaller(t);
  const calls = await Promise.all(Array.from({ length: 5 }, () => caller.call(listener.port)));
  await until('they are in', () => taken.length === calls.length);
  const closed = Promise.all(calls.map(({ close }) => close()));
  // as long as libsrt takes to put what has ended out of its lists
  await new Promise(setImmediate);
  const end = performance.now() + 3000;
  while (performance.now() < end);
  await closed;
  await until('all are told', () => taken.every((one) => one.closed !== undefined));
  t.deepEqual(
    taken.map((one) => one.closed),
    calls.map(() => 'the connection is gone'),
  );
});

test.serial('a caller that vanishes is noticed while packets for no socket keep coming', async (t) => {
  const { listener, taken } = listen(t);
  const vanishing = new SrtCaller(t);
  const { refused } = await vanishing.call(listener.port);
  t.is(refused, 0);
  await until('it is in', () => taken.length === 1);
  const program = join(import.meta.dirname, '../../../support/srt/flood-process.ts');
  const flood = Array.from({ length: 2 }, () => fork(program, [String(listener.port)], { stdio: 'ignore' }));
  t.teardown(() => flood.forEach((child) => child.kill('SIGKILL')));
  await vanishing.kill();
  await until('it is told', () => taken[0]?.closed !== undefined);
  t.is(taken[0]?.closed, 'the connection is gone');
});

test.serial('a process that exits while a caller waits for it is gone', async (t) => {
  const child = fork(join(import.meta.dirname, '../../../support/srt/leaving-process.ts'), { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  const [port] = (await once(child, 'message')) as [number];
  const callers = [new SrtCaller(t), new SrtCaller(t)];
  const calls = callers.map(async (caller) => {
    // until nobody answers
    while (child.exitCode === null && child.signalCode === null) await caller.call(port);
  });
  t.deepEqual(await once(child, 'exit', { signal: AbortSignal.timeout(60_000) }), [3, null]);
  await Promise.all(calls);
});

test.serial('names and files are found while it waits', async (t) => {
  const { listener } = listen(t);
  const work = Array.from({ length: 50 }, async () => {
    await lookup('localhost');
    await stat(import.meta.filename);
  });
  await t.notThrowsAsync(Promise.all(work));
  t.is((await new SrtCaller(t).call(listener.port)).refused, 0);
});
