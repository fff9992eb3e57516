import { once } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import net, { createServer, Socket, type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { httpSource } from '../../../../src/providers/http-pull/source.ts';
import { LocalClock } from '../../../../src/providers/intake/local-clock.ts';
import { ovtSource } from '../../../../src/providers/pull/ovt-source.ts';
import type { PullSource } from '../../../../src/providers/pull/source.ts';
import { rtmpSource } from '../../../../src/providers/rtmp-pull/source.ts';
import { rtspSource } from '../../../../src/providers/rtsp-pull/source.ts';
import { openGuard } from '../../../support/rtsp/rtsp-player.ts';
import { until } from '../../../support/time/until.ts';

/** All that connect over TCP, by their URLs. What a server begins to answer, and then hangs up. */
const KINDS = [
  ['rtsp://HOST/live', rtspSource, 'RTSP/1.0 200 OK\r\nCSe'],
  ['rtmp://HOST/live/s', rtmpSource, '\x03\x00\x00'],
  ['rtmps://HOST/live/s', rtmpSource, '\x16\x03\x03'],
  ['ovt://HOST/live/s', ovtSource, '\x00\x00\x00'],
  ['http://HOST/live.ts', httpSource, 'HTTP/1.1 200 O'],
  ['https://HOST/live.ts', httpSource, '\x16\x03\x03'],
  ['http://HOST/live.m3u8', httpSource, 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n#EXT'],
] as const;

/** A server that answers no request to its end, and its connections. */
async function serve(t: ExecutionContext, answer: (socket: Socket) => void) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).once('data', () => answer(socket));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

/** Opens a source, whose log is kept. */
function open(
  [url, source]: readonly [string, (typeof KINDS)[number][1], ...unknown[]],
  host: string,
  stop = new AbortController(),
) {
  const lines: string[] = [];
  const opening: Promise<PullSource> = source(openGuard())(url.replace('HOST', host), {
    log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
    clock: new LocalClock(),
    silenceMs: undefined,
    ignoresReports: false,
    signal: stop.signal,
  });
  opening.catch(() => undefined);
  return { opening, stop, lines };
}

for (const kind of KINDS) {
  test(`${kind[0]}: the connection to a server that never answers is closed when the pull is ended`, async (t) => {
    let asked = 0;
    const { host, sockets } = await serve(t, () => asked++);
    const { opening, stop, lines } = open(kind, host);
    await until('it has asked', () => asked === 1);
    const [socket] = sockets as [Socket];
    const gone = once(socket, 'close');
    stop.abort();
    await t.throwsAsync(opening, { instanceOf: Error });
    await gone;
    t.is(sockets.length, 1, 'it is not tried again');
    t.deepEqual(lines, []);
  });

  test.serial(`${kind[0]}: an attempt to connect is given up when the pull is ended`, async (t) => {
    const attempts: Socket[] = [];
    const { connect } = net;
    const replace = (other: typeof connect): void => {
      Object.assign(net, { connect: other });
      syncBuiltinESMExports();
    };
    // as with a server whose queue is full: the handshake is not answered
    replace((() => {
      const socket = new Socket();
      attempts.push(socket);
      return socket;
    }) as typeof connect);
    t.teardown(() => replace(connect));
    const { opening, stop, lines } = open(kind, '127.0.0.1:4000');
    await until('it connects', () => attempts.length === 1);
    stop.abort();
    await t.throwsAsync(opening, { name: 'PullError', message: /not wanted any more/ });
    t.deepEqual(
      attempts.map(({ destroyed }) => destroyed),
      [true],
    );
    t.deepEqual(lines, []);
  });

  test(`${kind[0]}: a server that hangs up in the middle of its answer leaves nothing to be ended`, async (t) => {
    const { host, sockets } = await serve(t, (socket) => socket.end(kind[2], 'latin1'));
    const { opening, stop, lines } = open(kind, host);
    await t.throwsAsync(opening, { instanceOf: Error });
    await until('its connections are closed', () => sockets.every(({ closed }) => closed));
    stop.abort();
    t.deepEqual(lines, []);
  });

  test(`${kind[0]}: nothing is connected to for a pull that has ended before`, async (t) => {
    const { host, sockets } = await serve(t, () => {});
    const stop = new AbortController();
    stop.abort();
    await t.throwsAsync(open(kind, host, stop).opening, { message: /not wanted any more/ });
    t.is(sockets.length, 0);
  });
}

test('a pull of HLS that waits for the first segments of a playlist is ended at once', async (t) => {
  const empty = '#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-MEDIA-SEQUENCE:0\n';
  const { host, sockets } = await serve(t, (socket) =>
    socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${empty.length}\r\nConnection: close\r\n\r\n${empty}`),
  );
  const { opening, stop } = open(['http://HOST/live.m3u8', httpSource], host);
  await until('it has the playlist', () => sockets[0]?.closed);
  stop.abort();
  await t.throwsAsync(opening, { instanceOf: Error });
  t.is(sockets.length, 1);
});
