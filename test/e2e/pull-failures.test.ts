import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { FakeCamera } from '../support/rtsp/fake-camera.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { shared } from '../support/runner/shared.ts';
import { Kiln } from '../support/server/kiln.ts';
import { freePorts } from '../support/network/ports.ts';
import { answerAsRecorded } from '../support/ovt/recorded-origin.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';

/** A TCP server on loopback that does with its connections what it is told. */
async function tcpServer(t: ExecutionContext, onConnection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    onConnection(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const teardown = new Teardown();
test.after.always(() => teardown.run());

/** The server that pulls, and one that it can pull from, which has no RTSPPull provider. */
const servers = shared(async () => {
  const [kiln, origin] = await Promise.all([
    Kiln.start({ ovt: true, providers: '<RTSPPull/>' }),
    Kiln.start({ ovt: true }),
  ]);
  teardown.teardown(() => Promise.all([kiln.stop(), origin.stop()]));
  return { kiln, origin };
});

/** Port on which no server listens. */
const closed = shared(() => freePorts(1)[0] as number);

/** URLs that cannot be pulled, and the reason, or its beginning: what a connection that breaks off says depends on when. */
type Failure = readonly [urls: string | readonly string[], reason: string];

let pulls = 0;

/** Asserts that each fails, and that the answer and the log have the reason. */
async function assertFail(t: ExecutionContext, failures: readonly Failure[]): Promise<void> {
  const { kiln } = await servers();
  const begins = `[HTTP] Could not pull the stream : http://127.0.0.1:${kiln.ports.api}${STREAMS}: `;
  for (const [urls, reason] of failures) {
    const seen = kiln.log.length;
    const { status, body } = await kiln.api(STREAMS, 'POST', { name: `s${pulls++}`, urls: [urls].flat() });
    t.is(status, 502, String(urls));
    t.true(body.message.startsWith(`${begins}${reason}`), `${body.message} (${reason})`);
    const told = body.message.slice(begins.length, -' (502)'.length);
    t.true(told.length > 5, body.message);
    t.true(body.message.endsWith(' (502)'));
    await until('the log tells why', () => kiln.log.slice(seen).includes(JSON.stringify(told).slice(1, -1)));
  }
}

/** Fails at once. */
const refusedConnection = (): Failure => [
  `rtsp://admin:secret@127.0.0.1:${closed()}/s?secret=1`,
  `127.0.0.1:${closed()} refused the connection`,
];

test.serial('the answer and the log give the reason why a stream cannot be pulled by OVT', async (t) => {
  const { origin } = await servers();
  const mute = await tcpServer(t, (socket) => socket.resume());
  const rude = await tcpServer(t, (socket) => socket.destroy());
  const chatty = await tcpServer(t, (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'.repeat(10)));
  await assertFail(t, [
    [`ovt://127.0.0.1:${closed()}/app/s`, `127.0.0.1:${closed()} refused the connection`],
    [`ovt://127.0.0.1:${mute}/app/s?secret=1`, 'no answer to describe in time'],
    [`ovt://127.0.0.1:${rude}/app/s`, ''],
    [`ovt://127.0.0.1:${chatty}/app/s`, 'the server is not an OVT origin: a packet has payload type '],
    [origin.ovtUrl('none'), 'the origin refused (404): There is no such stream (#default#app/none)'],
  ]);
});

test.serial('the answer and the log give the reason why a stream cannot be pulled by RTSP', async (t) => {
  const web = await tcpServer(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  const guarded = await FakeCamera.start(t, {
    answer: ({ method }) =>
      method === 'DESCRIBE' ? '401 Unauthorized\r\nWWW-Authenticate: Basic realm="cam"\r\n\r\n' : undefined,
  });
  const missing = await FakeCamera.start(t, {
    answer: ({ method }) => (method === 'DESCRIBE' ? '404 Not Found\r\n\r\n' : undefined),
  });
  const odd = await FakeCamera.start(t, {
    sdp: 'v=0\r\nm=video 0 RTP/AVP 96 26\r\na=rtpmap:96 H266/90000\r\nm=audio 0 RTP/AVP 97\r\na=rtpmap:97 L16/8000\r\n',
  });
  await assertFail(t, [
    refusedConnection(),
    [`rtsp://127.0.0.1:${web}/s`, ''],
    [missing.url('live', 'admin:secret@'), 'the server refused (404): Not Found'],
    [guarded.url(), 'the server asks for credentials, and the URL has none (401)'],
    [guarded.url('live', 'admin:secret@'), 'the server does not accept the credentials of the URL (401)'],
    [odd.url(), 'the stream has no track in a supported codec, only H266, L16'],
  ]);
});

test.serial(
  'the answer and the log give the reason why a stream cannot be pulled from a URL, or several',
  async (t) => {
    const { origin } = await servers();
    await assertFail(t, [
      ['ovt://origin.invalid/app/s', 'the name origin.invalid cannot be resolved: '],
      [
        'ftp://admin:secret@127.0.0.1/s',
        'streams are pulled over ovt, rtsp, rtspc, rtmp, rtmps, srt, http, https, whep, wheps, udp, not over "ftp"',
      ],
      [
        [`ovt://127.0.0.1:${closed()}/app/one?secret=1`, origin.ovtUrl('two')],
        `ovt://127.0.0.1:${closed()}/app/one: 127.0.0.1:${closed()} refused the connection; ` +
          `${origin.ovtUrl('two')}: the origin refused (404): There is no such stream (#default#app/two)`,
      ],
    ]);
  },
);

test.serial('a stream is not pulled by a provider that the application does not have', async (t) => {
  const { origin } = await servers();
  const off = await origin.api(STREAMS, 'POST', { name: 's', urls: [`rtsp://u:secret@127.0.0.1:${closed()}/s`] });
  t.is(off.status, 502);
  t.true(
    off.body.message.endsWith(
      `${STREAMS}: the RTSPPull provider is off: the application has no <RTSPPull/> in its Providers (502)`,
    ),
    off.body.message,
  );
});

test.serial('a failed pull leaves neither a stream nor secrets or stacks in the log', async (t) => {
  const { kiln, origin } = await servers();
  await assertFail(t, [refusedConnection()]);
  for (const { log } of [kiln, origin]) {
    t.false(log.includes('secret'), 'no secrets');
    t.notRegex(log, /\\n\s+at |"stack"|\bat \S+ \(/, 'no stacks');
  }
  t.deepEqual((await kiln.api<string[]>(STREAMS)).body.response, []);
});

test.serial('a stream of OvenMediaEngine is pulled, on request and on demand', async (t) => {
  const port = await tcpServer(t, answerAsRecorded);
  const origins =
    `<Origins><Origin><Location>/app/</Location><Pass><Scheme>ovt</Scheme>` +
    `<Urls><Url>127.0.0.1:${port}/app/</Url></Urls></Pass></Origin></Origins>`;
  const kiln = await Kiln.start({ ovt: true, vhost: origins });
  t.teardown(() => kiln.stop());
  const url = `ovt://127.0.0.1:${port}/app/osrc`;
  const properties = { relay: true, persistent: true, noInputFailoverTimeoutMs: 0 };
  t.is((await kiln.api(STREAMS, 'POST', { name: 'asked', urls: [url], properties })).status, 201);
  // 201: it is there, and its first segment is not yet
  await until('it plays', async () => {
    const { status } = await fetch(kiln.httpUrl('/app/osrc/llhls.m3u8'));
    t.true(status === 200 || status === 201, `${status}`);
    return status === 200;
  });
  for (const name of ['asked', 'osrc']) {
    interface Track {
      readonly video?: { readonly width: number; readonly height: number; readonly bypass: boolean };
      readonly audio?: { readonly codec: string; readonly bypass: boolean };
    }
    const { body } = await kiln.api<{ outputs: { tracks: Track[] }[] }>(`${STREAMS}/${name}`);
    const [video, audio] = body.response.outputs[0]?.tracks ?? [];
    t.like(video?.video, { codec: 'H264', width: 320, height: 180, bypass: true, codecStatus: 'Ready' });
    t.like(audio?.audio, { codec: 'AAC', samplerate: 44_100, channel: 1, bypass: true, codecStatus: 'Ready' });
  }
});

test.serial('a stream that a viewer requests and no origin has is logged once for each failure', async (t) => {
  const [closed] = freePorts(1);
  const origins =
    `<Origins><Origin><Location>/app/</Location><Pass><Scheme>ovt</Scheme>` +
    `<Urls><Url>127.0.0.1:${closed}/app/</Url></Urls></Pass></Origin></Origins>`;
  const kiln = await Kiln.start({ ovt: true, vhost: origins });
  t.teardown(() => kiln.stop());
  const ask = async (path: string) => (await fetch(kiln.httpUrl(path))).status;
  const both = await Promise.all([1, 2].map(() => ask('/app/wanted/llhls.m3u8?token=secret')));
  t.deepEqual(both, [404, 404]);
  const line =
    `#default#app/wanted, requested by a viewer or a push, could not be pulled from ovt://127.0.0.1:${closed}/app/wanted: ` +
    `127.0.0.1:${closed} refused the connection`;
  await until('the log tells why', () => kiln.log.includes(line));
  t.is(kiln.log.split(line).length, 2, 'once');
  t.false(kiln.log.includes('secret'));
});
