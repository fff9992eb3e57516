import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const STREAMS = '/v1/vhosts/default/apps/app/streams';
const INPUTS = ['-f', 'lavfi', '-i', 'testsrc2=s=320x180:r=25', '-f', 'lavfi', '-i', 'sine=440:r=48000'];
const VIDEO = ['-pix_fmt', 'yuv420p', '-c:v', 'libx264', '-preset', 'ultrafast', '-bf', '2', '-g', '25'];
const ENCODED = [...INPUTS, ...VIDEO, '-c:a', 'aac', '-ac', '2', '-f', 'mpegts', '-'];
const BASIC = `Basic ${Buffer.from('user:pass').toString('base64')}`;

interface Answer {
  readonly message: string;
}

/** An HTTP server with a live transport stream, which needs a password, and answers that are none. */
async function serve(t: ExecutionContext) {
  const children = new Set<ChildProcess>();
  const play = (response: ServerResponse): void => {
    const child = spawn('ffmpeg', ['-v', 'error', '-re', ...ENCODED], { stdio: ['ignore', 'pipe', 'ignore'] });
    children.add(child);
    child.stdout.pipe(response);
    response.once('close', () => child.kill('SIGKILL'));
  };
  const port = (): number => (server.address() as AddressInfo).port;
  const server = createServer(({ url, headers }, response) => {
    if (url === '/live.ts') {
      if (headers.authorization !== BASIC) return void response.writeHead(401).end();
      response.writeHead(200, { 'Content-Type': 'video/mp2t' });
      play(response);
    } else if (url === '/moved.ts') response.writeHead(302, { Location: '/live.ts' }).end();
    else if (url === '/away.ts') response.writeHead(302, { Location: `http://localhost:${port()}/bare.ts` }).end();
    else if (url === '/bare.ts') response.writeHead(headers.authorization === undefined ? 410 : 403).end();
    else if (url === '/loop.ts') response.writeHead(302, { Location: '/loop.ts' }).end();
    else if (url === '/to-file.ts') response.writeHead(302, { Location: 'file:///etc/passwd' }).end();
    else if (url === '/to-link-local.ts') response.writeHead(302, { Location: 'http://169.254.169.254/' }).end();
    else if (url === '/live.m3u8' || url === '/list.php')
      response.writeHead(200, { 'Content-Type': 'application/vnd.apple.mpegurl' }).end();
    else if (url === '/page.ts') response.writeHead(200, { 'Content-Type': 'text/html' }).end();
    else if (url === '/closed.ts') response.socket?.destroy();
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const child of children) child.kill('SIGKILL');
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${port()}`, stop: () => server.closeAllConnections() };
}

async function start(t: ExecutionContext, providers: string): Promise<Kiln> {
  const kiln = await Kiln.start({ providers });
  t.teardown(() => kiln.stop());
  return kiln;
}

test.serial('a transport stream of an HTTP server plays, and comes back after its connection was lost', async (t) => {
  const server = await serve(t);
  const kiln = await start(t, '<MPEGTS/>');
  const urls = [`http://user:pass@${server.host}/moved.ts`];
  const properties = { persistent: true, noInputFailoverTimeoutMs: 15_000 };
  t.is((await kiln.api(STREAMS, 'POST', { name: 'box', urls, properties })).status, 201);
  const live = await kiln.liveStream('box');
  t.like(live.input, { sourceType: 'MPEGTS', connection: { protocol: 'TCP', remoteAddress: '127.0.0.1' } });
  t.deepEqual(
    live.input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'AAC'],
  );
  await until('it plays', async () => (await fetch(kiln.httpUrl('/app/box/llhls.m3u8'))).status === 200);
  const port = live.input.connection?.localPort;
  t.truthy(port);
  server.stop();
  await until('another connection', async () => {
    const { input } = (await kiln.stream('box')).body.response;
    return input.connection?.localPort !== port && input.connection?.localPort !== undefined;
  });
  await kiln.liveStream('box');
});

test.serial('what cannot be pulled over HTTP is told', async (t) => {
  const { host } = await serve(t);
  const kiln = await start(t, '<MPEGTS/>');
  for (const [url, reason] of [
    [`http://${host}/none.ts`, /the server answered with 404/],
    [`http://user:secret@${host}/live.ts`, /the server answered with 401/],
    [`http://${host}/live.m3u8`, /the answer is no playlist of HLS/],
    [`http://${host}/list.php`, /the answer is no playlist of HLS/],
    [`http://${host}/page.ts`, /the server answered with text\/html, which is no transport stream/],
    [`http://user:pass@${host}/away.ts`, /the server answered with 410/],
    [`http://${host}/loop.ts`, /leads to other URLs without end/],
    [`http://${host}/to-file.ts`, /leads to something else than a URL of HTTP/],
    [`http://${host}/to-link-local.ts`, /pulling from 169\.254\.169\.254:80 is not allowed/],
    [`http://${host}/closed.ts`, /closed\.ts: it closed the connection without an answer/],
    [`https://${host}/live.ts`, /the TLS connection failed/],
    [`http://${host}/live.ts#secret`, /not a URL of HTTP: .* \(a # begins a fragment/],
    [`http://127.0.0.1:${kiln.ports.http}/app/s.ts`, /is not allowed: the port belongs to this server/],
  ] as const) {
    const { status, body } = await kiln.api<Answer>(STREAMS, 'POST', { name: 'none', urls: [url] });
    t.is(status, 502, url);
    t.regex(kiln.log, reason, url);
    t.notRegex(`${JSON.stringify(body)} ${kiln.log}`, /secret/);
  }
  const without = await start(t, '');
  t.is((await without.api(STREAMS, 'POST', { name: 'none', urls: [`http://${host}/live.ts`] })).status, 502);
  t.regex(without.log, /the MPEGTS provider is off: the application has no <MPEGTS\/> in its Providers/);
});
