import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startDemo, type Demo } from '../../../src/server/demo.ts';
import { findFfmpeg } from '../../../src/ffmpeg.ts';
import { createLogger } from '../../../src/log/log.ts';
import { startRtmp } from '../../support/rtmp/rtmp-server.ts';
import { until } from '../../support/time/until.ts';
import { writeScript } from '../../support/programs/script.ts';

const log = createLogger('silent');

async function listen(t: ExecutionContext): Promise<{ server: Server; port: number }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { server, port: (server.address() as AddressInfo).port };
}

async function start(t: ExecutionContext, rtmpPort: number, ffmpegPath: string): Promise<Demo> {
  const demo = await startDemo({ ip: ['*'], hostNames: ['*'], rtmpPort, app: 'app', stream: 'demo', ffmpegPath, log });
  t.teardown(() => demo.close());
  return demo;
}

test('publishes over RTMP, comes back when its connection is cut, and is gone when closed', async (t) => {
  const { server, port } = await listen(t);
  const { path } = await findFfmpeg();
  const demo = await start(t, port, path);

  const [first] = (await once(server, 'connection')) as [Socket];
  const [hello] = (await once(first, 'data')) as [Buffer];
  t.is(hello[0], 3, 'C0 of RTMP');
  first.destroy();

  const [second] = (await once(server, 'connection')) as [Socket];
  second.on('error', () => undefined).resume();
  const cut = once(second, 'close');
  await demo.close();
  await cut;
  await t.notThrowsAsync(demo.close());
});

test('reaches a virtual host by its name, at an address that is listened on', async (t) => {
  const server = await startRtmp({ hostNames: ['*.live.example'] });
  t.teardown(() => server.close());
  const { path } = await findFfmpeg();
  const demo = await startDemo({
    ip: ['127.0.0.1'],
    hostNames: ['*.live.example'],
    rtmpPort: server.port,
    app: 'app',
    stream: 'demo',
    ffmpegPath: path,
    log,
  });
  t.teardown(() => demo.close());
  await until('the stream', () => server.recordings.length === 1);
  t.is(server.recordings[0]?.input.source.url, `rtmp://a.live.example:${server.port}/app/demo`);
});

test('an ffmpeg that cannot draw the clock publishes a pattern without it', async (t) => {
  const { server, port } = await listen(t);
  const folder = await mkdtemp(join(tmpdir(), 'kiln-demo-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const { path } = await findFfmpeg();
  const plain = writeScript(join(folder, 'ffmpeg'), `case "$*" in *drawtext*) exit 1;; esac\nexec ${path} "$@"`);
  await start(t, port, plain);
  const [socket] = (await once(server, 'connection')) as [Socket];
  socket.on('error', () => undefined);
  const [hello] = (await once(socket, 'data')) as [Buffer];
  t.is(hello[0], 3, 'C0 of RTMP');
});

test('closing ends the waiting for a next start', async (t) => {
  const { port } = await listen(t);
  const demo = await start(t, port, '/nonexistent/ffmpeg');
  await t.notThrowsAsync(demo.close());
});
