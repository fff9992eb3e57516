import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { BlockList } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { OutboundGuard } from '../../../../src/protocols/outbound/guard.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import type { SourceSink } from '../../../../src/providers/pull/source.ts';
import { udpSource } from '../../../../src/providers/udp-pull/source.ts';
import { parseUdpUrl } from '../../../../src/providers/udp-pull/url.ts';
import { Program } from '../../../support/media/ffmpeg.ts';
import { freePorts } from '../../../support/network/ports.ts';
import { PULLING } from '../../../support/pushing/outbound.ts';
import { until } from '../../../support/time/until.ts';

function source(networks?: readonly string[]) {
  const list = new BlockList();
  for (const network of networks ?? []) list.addSubnet(network, 32);
  const guard = new OutboundGuard({
    ...PULLING,
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
    ...(networks !== undefined && { allowed: { networks: list, element: 'Modules/Pull' } }),
  });
  const open = udpSource(guard);
  const log = pino({ level: 'silent' });
  const options = { log, silenceMs: undefined, ignoresReports: false };
  return (url: string, { signal } = new AbortController()) =>
    open(url, { ...options, clock: new LocalClock(), signal });
}

/** Sends a test pattern from a port of loopback. */
function send(t: ExecutionContext, url: string, format = 'mpegts'): Program {
  const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=160x90:r=25', '-f', 'lavfi', '-i', 'sine=440:r=48000'];
  const video = ['-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-preset', 'ultrafast', '-g', '25', '-c:a', 'aac'];
  const program = new Program('ffmpeg', ['-v', 'error', '-re', ...inputs, ...video, '-f', format, url]);
  t.teardown(() => program.stop());
  return program;
}

async function plays(t: ExecutionContext, opening: ReturnType<ReturnType<typeof source>>) {
  const opened = await opening;
  t.teardown(() => opened.close());
  let [packets, codecs] = [0, [] as string[]];
  const sink: SourceSink = {
    tracks: (tracks) => (codecs = tracks.map(({ codec }) => codec)),
    packet: () => packets++,
    received: () => {},
    lost: () => {},
    trouble: () => {},
    end: () => {},
  };
  await opened.play(sink);
  await until('it plays', () => packets > 50);
  t.deepEqual(codecs.sort(), ['AAC', 'H264']);
  return opened;
}

for (const format of ['mpegts', 'rtp_mpegts'])
  test(`${format} comes in on a port, which nothing else gets until the end`, async (t) => {
    const [port] = freePorts(1) as [number];
    const open = source();
    const opening = open(`udp://127.0.0.1:${port}`);
    send(t, `${format === 'mpegts' ? 'udp' : 'rtp'}://127.0.0.1:${port}?pkt_size=1316`, format);
    const pulled = await plays(t, opening);
    t.like(pulled.connection, { protocol: 'UDP', localPort: port, remoteAddress: '127.0.0.1' });
    await t.throwsAsync(open(`udp://127.0.0.1:${port}`), {
      name: 'PullError',
      message: /cannot be opened: it is in use/,
    });
    pulled.close();
    const socket = createSocket('udp4').bind(port, '127.0.0.1');
    await once(socket, 'listening');
    socket.close();
  });

test('a pull over UDP that is ended while it waits gives its port back', async (t) => {
  const [port] = freePorts(1) as [number];
  const stop = new AbortController();
  const opening = source()(`udp://127.0.0.1:${port}`, stop);
  const isFree = async (): Promise<boolean> => {
    const socket = createSocket('udp4').bind(port, '127.0.0.1');
    const wasFree = await once(socket, 'listening').then(
      () => true,
      () => false,
    );
    socket.close();
    return wasFree;
  };
  await until('it waits there', async () => !(await isFree()));
  stop.abort();
  await t.throwsAsync(opening, { name: 'PullError', message: /not wanted any more/ });
  t.true(await until('the port is free', isFree));
});

test('a multicast group is joined where a list of networks has it', async (t) => {
  const [port] = freePorts(1) as [number];
  const group = '239.255.77.7';
  await t.throwsAsync(source()(`udp://${group}:${port}`), { message: /only a list of allowed networks permits/ });
  const opening = source([group, '127.0.0.1'])(`udp://${group}:${port}?localaddr=127.0.0.1`);
  send(t, `udp://${group}:${port}?pkt_size=1316&localaddr=127.0.0.1`);
  await plays(t, opening);
});

test('senders elsewhere, and what is no transport stream, are not taken', async (t) => {
  const [port] = freePorts(1) as [number];
  const opening = source(['127.0.0.2'])(`udp://127.0.0.1:${port}`);
  send(t, `udp://127.0.0.1:${port}?pkt_size=1316`);
  const noise = createSocket('udp4').bind(0, '127.0.0.2');
  await once(noise, 'listening');
  const timer = setInterval(() => noise.send('no transport stream', port, '127.0.0.1'), 100);
  t.teardown(() => {
    clearInterval(timer);
    noise.close();
  });
  await t.throwsAsync(opening, { name: 'PullError', message: /nothing came to UDP port \d+ within 9 s/ });
});

test('a UDP URL that is wrong is refused with the reason', async (t) => {
  for (const [url, reason] of [
    ['udp://localhost:4000', /does not name an IP address and a port/],
    ['udp://127.0.0.1', /does not name an IP address and a port/],
    ['udp://127.0.0.1:4000/x', /more than an address, a port and a query/],
    ['udp://127.0.0.1:4000?colour=red', /colour is not an option of UDP/],
    ['udp://239.1.2.3:4000?localaddr=eth0', /localaddr is not an IP address/],
    ['udp://239.1.2.3:4000?localaddr=::1', /of the same family/],
    ['udp://127.0.0.1:4000?localaddr=127.0.0.1', /for multicast groups alone/],
    ['udp://a b', /not a URL/],
  ] as const)
    await t.throwsAsync(source()(url), { name: 'PullError', message: reason }, url);
  await t.throwsAsync(source()('udp://203.0.113.7:4000'), { message: /this machine has no such address/ });
  t.deepEqual(parseUdpUrl('udp://@239.1.2.3:4000'), {
    ...{ address: '239.1.2.3', isGroup: true, port: 4000, localAddress: undefined },
  });
  t.like(parseUdpUrl('udp://[ff02::7]:4000?localaddr=::1'), { isGroup: true, localAddress: '::1' });
});
