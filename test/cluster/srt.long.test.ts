import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { findProgram } from '../../deploy/cluster/program.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import type { Kiln } from '../support/server/kiln.ts';
import { startNode, untilStates, usedRedis } from '../support/server/nodes.ts';
import { freePorts } from '../support/network/ports.ts';
import { SrtCaller } from '../support/srt/caller.ts';
import { until } from '../support/time/until.ts';

const CONFIG = join(import.meta.dirname, '../../deploy/nginx-srt.conf');

/** Two nodes, and nginx with deploy/nginx-srt.conf in front of them. */
async function start(t: ExecutionContext) {
  const redis = await usedRedis(t);
  const [a, b] = (await Promise.all(['a', 'b'].map((id) => startNode(t, redis, id, { srt: {} })))) as [Kiln, Kiln];
  await untilStates(a, { a: 'ready', b: 'ready' });
  const [publish = 0, play = 0] = freePorts(2);
  const folder = await mkdtemp(join(tmpdir(), 'kiln-test-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const text = (await readFile(CONFIG, 'utf8'))
    .replace(/^ *server node-3:.*\n/gm, '')
    .replaceAll('node-1:9999', `127.0.0.1:${a.ports.srt}`)
    .replaceAll('node-2:9999', `127.0.0.1:${b.ports.srt}`)
    .replaceAll('node-1:9998', `127.0.0.1:${a.ports.srtPlay}`)
    .replaceAll('node-2:9998', `127.0.0.1:${b.ports.srtPlay}`)
    .replace('listen 9999', `listen 127.0.0.1:${publish}`)
    .replace('listen 9998', `listen 127.0.0.1:${play}`)
    .replace('/run/nginx-srt.pid', join(folder, 'nginx.pid'));
  await writeFile(join(folder, 'nginx.conf'), text);
  const nginx = new Program(findProgram('nginx'), [
    '-e',
    'stderr',
    '-c',
    join(folder, 'nginx.conf'),
    '-g',
    'daemon off;',
  ]);
  // its workers end with it
  t.teardown(async () => {
    nginx.signal('SIGTERM');
    await nginx.exited();
  });
  return { a, b, publish, play };
}

test('publishers and players pass nginx; when a node dies, the encoder is back on the other', async (t) => {
  const { a, b, publish, play } = await start(t);
  const url = `srt://127.0.0.1:${publish}?streamid=default/app/live&pkt_size=1316&latency=60000&timeout=2000000`;
  const encode = (): Program =>
    new Program('ffmpeg', [...patternArguments({ size: '160x90', rate: 15, gop: 15 }), '-f', 'mpegts', url]);
  let encoder = encode();
  t.teardown(() => encoder.stop());
  // an encoder that connects again when it has lost its server
  const again = setInterval(() => {
    if (!encoder.running) encoder = encode();
  }, 200);
  t.teardown(() => clearInterval(again));

  const isLive = async (node: Kiln): Promise<boolean> => (await node.stream('live')).status === 200;
  await until('it is live, for both', async () => (await isLive(a)) && isLive(b));
  const owner = a.log.includes('"event":"stream.published"') ? a : b;
  const other = owner === a ? b : a;
  const caller = new SrtCaller(t);
  // a stream is told of before it can be played: who is early is sent away, and comes again
  const plays = (port: number): Promise<boolean> =>
    until(`media comes from ${port}`, async () => {
      const viewer = await caller.call(port, { streamId: 'default/app/live' });
      if (viewer.refused !== 0) return false;
      const outcome = await until('media comes, or the end', async () => {
        const bytes = await viewer.receive();
        return bytes !== 0 && bytes;
      });
      return outcome > 0;
    });
  await plays(play);
  await plays(owner.ports.srtPlay as number);
  await plays(other.ports.srtPlay as number);

  owner.signal('SIGKILL');
  await owner.exited();
  await until('the encoder is on the other node', () => other.log.includes('"event":"stream.published"'), 60_000);
  await other.liveStream('live');
  t.true(await plays(play));
});
