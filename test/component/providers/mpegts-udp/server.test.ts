import { networkInterfaces } from 'node:os';
import test from 'ava';
import { startMpegts, UdpSender } from '../../../support/mpegts/mpegts-server.ts';
import { standStillBeforeTimers } from '../../../support/time/stand-still.ts';
import { until } from '../../../support/time/until.ts';

test('a stream of a UDP port has the address of its sender', async (t) => {
  const { port, taken, registry } = await startMpegts(t);
  const sender = await UdpSender.open(t, port);
  await sender.send(30);
  await until('the stream', () => taken[0]?.packets.length === 60);
  const { input } = taken[0]!;
  t.is(input.name, `live_${port}`);
  t.like(input.source, { type: 'MPEGTS', kind: 'mpegts', url: `udp://127.0.0.1:${port}` });
  t.deepEqual(input.source.connection?.(), {
    transport: 'UDP',
    protocol: 'UDP',
    localAddress: '127.0.0.1',
    localPort: port,
    remoteAddress: '127.0.0.1',
    remotePort: sender.from,
  });
  t.deepEqual(
    input.tracks.map(({ codec }) => codec),
    ['H264', 'AAC'],
  );
  t.is(registry.counters.providers.mpegts, 1);
  t.true(input.counters.in.totalBytes > 10_000);
});

test('every port of a range has a stream of its own', async (t) => {
  const { ports, taken } = await startMpegts(t, {
    ports: 3,
    streams: () => [{ name: 'live_${Port}', port: '1-65535' }],
  });
  for (const port of ports) await (await UdpSender.open(t, port)).send(3);
  await until('the streams', () => taken.length === 3);
  t.deepEqual(taken.map(({ input }) => input.name).sort(), ports.map((port) => `live_${port}`).sort());
});

test('only one sender of MPEG-TS over UDP is heard at a time: another one is ignored until it is silent', async (t) => {
  const { port, taken, lines } = await startMpegts(t, { mpegts: { packetSilenceTimeoutMs: 1000 } });
  const one = await UdpSender.open(t, port);
  const other = await UdpSender.open(t, port);
  await one.send(5);
  await other.send(5);
  await one.send(5);
  await until('all that was sent', () => taken[0]?.packets.length === 20);
  await until('its end', () => taken[0]?.closed !== undefined);
  t.is(taken[0]?.closed, 'no packet for 1000 ms');
  await until('the log tells of the other', () => lines.includes('ignored datagrams from another sender'));
  const third = await UdpSender.open(t, port);
  await third.send(5);
  await until('the next stream', () => taken[1]?.packets.length === 10);
  t.is(taken[1]?.input.source.connection?.()?.remotePort, third.from);
});

test('a sender that comes again from elsewhere goes on with a stream that does not end by silence', async (t) => {
  const { port, taken } = await startMpegts(t, { mpegts: { packetSilenceTimeoutMs: 0 } });
  const one = await UdpSender.open(t, port);
  await one.send(5);
  await until('the stream', () => taken[0]?.packets.length === 10);
  const other = await UdpSender.open(t, port);
  await until('the other', async () => {
    await other.send(1);
    return taken[0]?.input.source.connection?.()?.remotePort === other.from;
  });
  await other.send(30);
  await until('more', () => (taken[0]?.packets.length ?? 0) > 30);
  t.is(taken.length, 1);
});

test('datagrams without MPEG-TS, and to ports of no stream, do nothing', async (t) => {
  const { port, taken, lines, server } = await startMpegts(t, { streams: () => [{ name: 'other', port: '1' }] });
  const sender = await UdpSender.open(t, port);
  sender.sendRaw(Buffer.from('hello'));
  sender.sendRaw(Buffer.alloc(0));
  sender.sendRaw(Buffer.of(0x80, 0x21));
  sender.sendRaw(Buffer.of(0x80, 200, 0, 0));
  await sender.send(10);
  await until('the refusal', () =>
    lines.includes('MPEG-TS publisher refused: no application has a stream for the port'),
  );
  await server.close();
  t.deepEqual(lines.filter((line) => line.startsWith('MPEG-TS publisher refused')).length, 1);
  t.true(lines.includes('ignored datagrams that are not MPEG-TS'));
  t.deepEqual(taken, []);
});

test('the number of MPEG-TS streams over UDP is limited, and there are none while the node drains', async (t) => {
  const { ports, taken, lines, registry } = await startMpegts(t, {
    ports: 2,
    mpegts: { maxConnection: 1 },
    streams: () => [{ name: 'live_${Port}', port: '1-65535' }],
  });
  const [first, second] = ports as [number, number];
  await (await UdpSender.open(t, first)).send(3);
  await until('the stream', () => taken.length === 1);
  await (await UdpSender.open(t, second)).send(3);
  await until('the refusal', () =>
    lines.includes('MPEG-TS publisher refused: Too many connections: at most 1 are allowed'),
  );
  t.is(taken.length, 1);
  registry.draining = true;
  taken[0]?.input.close('for the test');
  const sender = await UdpSender.open(t, first);
  await sender.send(3);
  await until('the refusal', () => lines.some((line) => line.includes('draining')));
  t.is(taken.length, 1);
});

test('signed policies that are enabled for MPEG-TS keep senders out: they bring none', async (t) => {
  const { port, taken, lines } = await startMpegts(t, {
    signedPolicy: {
      policyQueryKeyName: 'p',
      signatureQueryKeyName: 's',
      algorithm: 'sha1',
      secretKey: 'x',
      enables: { providers: 'mpegts', publishers: '' },
    },
  });
  await (await UdpSender.open(t, port)).send(3);
  await until('the refusal', () => lines.some((line) => line.includes('Access denied: the URL has no policy')));
  t.deepEqual(taken, []);
});

test.serial(
  'a stream that is deleted stays so until its sender pauses; one whose application restarts comes back',
  async (t) => {
    const { port, taken, vhost, application } = await startMpegts(t, { mpegts: { packetSilenceTimeoutMs: 0 } });
    const sender = await UdpSender.open(t, port);
    await sender.send(5);
    await until('the stream', () => taken[0]?.packets.length === 10);
    taken[0]?.input.end('deleted by the management API');
    for (let i = 0; i < 10; i++) {
      await sender.send(5);
      // it is not the sender who is silent then
      if (i === 4) await standStillBeforeTimers(2000);
    }
    t.is(taken.length, 1);
    const other = await UdpSender.open(t, port);
    await other.send(5);
    await until('the stream of another', () => taken[1]?.packets.length === 10);
    vhost.applications.get('app')?.close('the application was changed');
    vhost.createApplication(application({ streams: [{ name: 'renamed', port: `${port}` }] }) as never);
    await until('its next stream', async () => {
      await other.send(5);
      return taken.length === 3;
    });
    t.is(taken[2]?.input.name, 'renamed');
  },
);

test('MPEG-TS over UDP is held up to a limit while the stream name is being acquired', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { port, taken, registry, lines } = await startMpegts(t, {
    asked: promise,
    mpegts: { packetSilenceTimeoutMs: 0 },
  });
  const sender = await UdpSender.open(t, port);
  await sender.send(20);
  await until('all was sent', async () => {
    await sender.send(20);
    return lines.some((line) => line.includes('before the stream began'));
  });
  t.is(registry.counters.in.totalBytes, 0);
  resolve();
  await until('the stream', () => (taken[0]?.packets.length ?? 0) > 40);
  t.is(taken[0]?.packets[0]?.dts, 0);
  t.true(registry.counters.in.totalBytes > 1000 * 188);
});

test('held MPEG-TS over UDP takes little memory, however large its datagrams are', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { port, registry, lines } = await startMpegts(t, { asked: promise });
  const sender = await UdpSender.open(t, port);
  const nothing = Buffer.alloc(188, 0xff);
  nothing.writeUInt32BE(0x471fff10);
  const large = Buffer.concat(Array.from({ length: 300 }, () => nothing));
  await until('more was sent than is held', () => {
    for (let i = 0; i < 10; i++) sender.sendRaw(large);
    return lines.some((line) => line.includes('before the stream began'));
  });
  resolve();
  await until('what was held', () => registry.counters.in.totalBytes > 0);
  t.true(registry.counters.in.totalBytes < 3_000_000, `${registry.counters.in.totalBytes} bytes were held`);
});

test('a server that closes meanwhile has no stream left', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { port, taken, given, notGiven, lines, server } = await startMpegts(t, { asked: promise });
  const sender = await UdpSender.open(t, port);
  await until('its session', async () => {
    await sender.send(5);
    return lines.length > 0;
  });
  await server.close();
  resolve();
  await until('the name is not taken', () => notGiven.length === 1);
  t.like(notGiven[0], { message: 'The client has gone' });
  t.deepEqual([given, taken], [[], []]);
});

/** RFC 2250. */
function rtp(): (payload: Buffer) => Buffer {
  let sequence = 65_500;
  return (payload) => {
    const header = Buffer.from('8021000000000000cafe0001', 'hex');
    header.writeUInt16BE(sequence++ & 0xffff, 2);
    return Buffer.concat([header, payload]);
  };
}

/** Whatever is behind the first datagrams, three by three in the opposite order. */
function disordered(wrap: (datagram: Buffer) => Buffer): (datagram: Buffer) => readonly Buffer[] {
  let count = 0;
  const waiting: Buffer[] = [];
  return (datagram) => {
    if (count++ < 10) return [wrap(datagram)];
    waiting.unshift(wrap(datagram));
    return waiting.length < 3 ? [] : waiting.splice(0);
  };
}

test('RTP is taken without being configured; where reordering is, out of order as well', async (t) => {
  for (const packetReordering of [false, true]) {
    const { port, taken, lines, server } = await startMpegts(t, { mpegts: { packetReordering } });
    const sender = await UdpSender.open(t, port);
    const wrap = rtp();
    sender.wrap = packetReordering ? disordered(wrap) : (datagram) => [wrap(datagram)];
    await sender.send(40);
    await until('all that was sent', () => (taken[0]?.packets.length ?? 0) >= 78);
    await server.close();
    t.deepEqual(
      lines.filter((line) => line.includes('lost')),
      [],
    );
  }
});

test('a plain stream out of order is put in order, where that is configured', async (t) => {
  const { port, taken, lines, server } = await startMpegts(t, { mpegts: { packetReordering: true } });
  const sender = await UdpSender.open(t, port);
  sender.wrap = disordered((datagram) => datagram);
  await sender.send(40);
  await until('all that was sent', () => (taken[0]?.packets.length ?? 0) >= 78);
  await server.close();
  t.deepEqual(
    lines.filter((line) => line.includes('lost')),
    [],
  );
});

test('datagrams that never come are counted, plain and in RTP', async (t) => {
  for (const wrap of [(datagram: Buffer) => datagram, rtp()]) {
    const { port, taken } = await startMpegts(t);
    const sender = await UdpSender.open(t, port);
    sender.wrap = (datagram) => [wrap(datagram)];
    await sender.send(10);
    await until('the stream', () => (taken[0]?.packets.length ?? 0) > 0);
    t.is(taken[0]?.input.counters.lostPackets, 0);
    sender.wrap = (datagram) => (wrap(datagram), []);
    await sender.send(2);
    sender.wrap = (datagram) => [wrap(datagram)];
    await sender.send(10);
    await until('the loss shows', () => (taken[0]?.input.counters.lostPackets ?? 0) > 0);
  }
});

/** Datagrams of so many bytes, which begin and end anywhere in packets, as ffmpeg sends them unless it is told otherwise. */
function cut(bytes: number): (datagram: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0);
  return (datagram) => {
    rest = Buffer.concat([rest, datagram]);
    const full: Buffer[] = [];
    for (; rest.length >= bytes; rest = rest.subarray(bytes)) full.push(rest.subarray(0, bytes));
    return full;
  };
}

test('datagrams that begin anywhere in a packet, where reordering is, too', async (t) => {
  for (const packetReordering of [false, true]) {
    const { port, taken, lines, server } = await startMpegts(t, { mpegts: { packetReordering } });
    const sender = await UdpSender.open(t, port);
    sender.wrap = cut(1472);
    await sender.send(80);
    await until('all that was sent', () => (taken[0]?.packets.length ?? 0) >= 150);
    await server.close();
    t.deepEqual(
      lines.filter((line) => !line.includes('MPEG-TS')),
      [],
    );
  }
});

test('RTP behind a plain stream of the same sender', async (t) => {
  const { port, taken, lines, server } = await startMpegts(t);
  const sender = await UdpSender.open(t, port);
  await sender.send(20);
  const wrap = rtp();
  sender.wrap = (datagram) => [wrap(datagram)];
  await sender.send(20);
  await until('all that was sent', () => (taken[0]?.packets.length ?? 0) >= 78);
  await server.close();
  t.deepEqual(
    lines.filter((line) => line.includes('lost')),
    [],
  );
});

test('a multicast group, beside another on the same port', async (t) => {
  const groups = ['239.255.71.1', '239.255.71.2'];
  const { port, taken } = await startMpegts(t, {
    groups: (first) => groups.map((group) => ({ group, first, last: first })),
    streams: (first) => groups.map((group, i) => ({ name: `group_${i}`, port: `${group}:${first}/udp` })),
  });
  for (const group of groups) await (await UdpSender.open(t, port, group, '127.0.0.1')).send(5);
  await until('both streams', () => taken.length === 2 && taken.every(({ packets }) => packets.length === 10));
  t.deepEqual(taken.map(({ input }) => input.name).sort(), ['group_0', 'group_1']);
  t.like(taken[0]?.input.source.connection?.(), { localPort: port });
});

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((one) => one?.address === '::1');

(hasIpv6 ? test : test.skip)('IPv6 beside IPv4; groups of it can be joined', async (t) => {
  const {
    ports: [first, second],
    server,
    taken,
  } = await startMpegts(t, {
    hosts: ['127.0.0.1', '::1'],
    ports: 2,
    streams: () => [{ name: 'live_${Port}', port: '1-65535' }],
    groups: (port) => [{ group: 'ff15::4711', first: port, last: port }],
  });
  t.deepEqual(server.ports, [second, second, first]);
  await (await UdpSender.open(t, second as number, '::1')).send(5);
  await until('the stream', () => taken[0]?.packets.length === 10);
  t.like(taken[0]?.input.source.connection?.(), { localAddress: '::1', remoteAddress: '::1' });
});

test('a port that is taken keeps the server from starting, and frees the others', async (t) => {
  const { port } = await startMpegts(t);
  await t.throwsAsync(startMpegts(t, { groups: () => [{ first: port, last: port }] }), { code: 'EADDRINUSE' });
  await t.throwsAsync(
    startMpegts(t, { hosts: ['127.0.0.1'], groups: (first) => [{ group: 'ff11::1', first, last: first }] }),
    { message: /no address/ },
  );
});
