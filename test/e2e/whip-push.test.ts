import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { codecsOf, probe } from '../support/media/probe.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const run = promisify(execFile);
const APP = '/v1/vhosts/default/apps/app';

interface Push {
  readonly state: string;
  readonly sentBytes: number;
  readonly sequence: number;
}

async function start(t: ExecutionContext, options: KilnOptions): Promise<Kiln> {
  const kiln = await Kiln.start(options);
  t.teardown(() => kiln.stop());
  return kiln;
}

test.serial('a stream is pushed over WHIP to another Kiln, which plays it, and the push is stopped', async (t) => {
  const [from, to] = [await start(t, { publishers: '<Push/>' }), await start(t, { whip: true })];
  const encoder = publishPattern(from.rtmpUrl('talk'));
  t.teardown(() => encoder.stop());
  await from.liveStream('talk');
  const url = `whip://${to.address}:${to.ports.http}/app/copy?direction=whip`;
  const body = { id: 'copy', stream: { name: 'talk' }, protocol: 'whip', url, streamKey: 'a-secret-token' };
  t.is((await from.api(`${APP}:startPush`, 'POST', body)).status, 200);
  const { input } = await to.liveStream('copy');
  t.like(input, { sourceType: 'WebRTC' });
  t.deepEqual(
    input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'OPUS'],
  );
  const pushes = async () => (await from.api<readonly Push[]>(`${APP}:pushes`)).body.response;
  const push = await until('bytes are counted', async () => {
    const [one] = await pushes();
    return one !== undefined && one.sentBytes > 0 && one;
  });
  t.like(push, { state: 'pushing', sequence: 1 });

  const playlist = to.httpUrl('/app/copy/llhls.m3u8');
  await until('it plays', async () => (await fetch(playlist)).status === 200);
  t.deepEqual(codecsOf(await probe(playlist)), ['aac', 'h264']);
  const { stderr } = await run(
    'ffmpeg',
    ['-v', 'error', '-xerror', '-t', '5', '-i', playlist, '-fps_mode', 'vfr', '-f', 'null', '-'],
    {
      timeout: PATIENCE_MS,
    },
  );
  t.is(stderr, '');

  t.is((await from.api(`${APP}:stopPush`, 'POST', { id: 'copy' })).status, 200);
  await until('the copy has ended', async () => (await to.stream('copy')).status === 404);
  t.notRegex(from.log, /a-secret-token/);
});

test.serial('a refusing WHIP server is reported, and wrong requests are 400', async (t) => {
  const [from, to] = [await start(t, { publishers: '<Push/>' }), await start(t, {})];
  const encoder = publishPattern(from.rtmpUrl('talk'));
  t.teardown(() => encoder.stop());
  const url = `whip://${to.address}:${to.ports.http}/app/copy?direction=whip`;
  const body = { id: 'one', stream: { name: 'talk' }, protocol: 'whip', url };
  t.is((await from.api(`${APP}:startPush`, 'POST', body)).status, 200);
  await until('it is told', () => /the server refused the offer \(\d+\): /.test(from.log));
  for (const wrong of [
    { protocol: 'whep' },
    { protocol: 'whip', url: 'http://127.0.0.1/x' },
    { streamKey: 'two words' },
    { url: 'whip://' },
  ])
    t.is((await from.api(`${APP}:startPush`, 'POST', { ...body, id: 'two', ...wrong })).status, 400);
});
