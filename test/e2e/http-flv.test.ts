import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { asNobody } from '../support/programs/as-nobody.ts';
import { codecsOf, probe } from '../support/media/probe.ts';
import { Program, publishPattern } from '../support/media/ffmpeg.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Kiln } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const run = promisify(execFile);

const undo = new Teardown();
let kiln: Kiln;
const url = (file: string) => kiln.httpUrl(`/app/${file}`);

test.before(async () => {
  kiln = await Kiln.start({ flv: true, hls: '' });
  undo.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('talk'), PICTURE);
  undo.teardown(() => publisher.stop());
  await until('the stream', async () => (await kiln.stream('talk')).status === 200);
});
test.after.always(() => undo.run());

/** Skips a test where a program is not installed. */
const having = (program: string) => (spawnSync('which', [program]).status === 0 ? test : test.skip);

for (const file of ['talk.flv', 'talk.ts', 'talk.flv?gop=0', 'talk/llhls.flv', 'talk/llhls.ts'])
  test(`ffprobe plays ${file} from a key frame on`, async (t) => {
    const probed = await probe(url(file));
    t.deepEqual(codecsOf(probed), ['aac', 'h264']);
    const first = probed.packets.find(({ codec_type }) => codec_type === 'video');
    t.true(first?.flags.startsWith('K'), JSON.stringify(first));
  });

for (const [file, demuxer] of [
  ['talk.flv', 'flvdemux name=d d.video'],
  ['talk.ts', 'tsdemux'],
] as const)
  having('gst-launch-1.0')(`GStreamer plays ${file}`, async (t) => {
    const played = 'queue ! h264parse ! avdec_h264 ! fakesink num-buffers=20 sync=false';
    const pipeline = `souphttpsrc location=${url(file)} ! ${demuxer} ! ${played}`;
    await t.notThrowsAsync(run('gst-launch-1.0', ['-q', ...pipeline.split(' ')], { timeout: PATIENCE_MS }));
  });

having('cvlc')('VLC plays FLV over HTTP', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-flv-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await chmod(folder, 0o777);
  const file = join(folder, 'out.ts');
  const vlc = ['cvlc', '-I', 'dummy', '--no-dbus', '--sout', `#std{access=file,mux=ts,dst=${file}}`];
  const player = asNobody([...vlc, url('talk.flv'), 'vlc://quit'], folder);
  t.teardown(() => player.stop());
  await until('some of both', async () => {
    if (((await stat(file).catch(() => undefined))?.size ?? 0) < 50_000) return false;
    const found = codecsOf(await probe(file));
    return ['aac', 'h264'].every((codec) => found.includes(codec));
  }).catch((error: Error) => t.fail(`${error.message}: ${player.stderr}`));
  t.true(player.running, player.stderr);
});

interface Statistics {
  readonly publishers: { readonly connections: Readonly<Record<string, number>> };
}

test('ffmpeg that plays FLV over HTTP is listed and counted, and ends with the API', async (t) => {
  const player = new Program('ffmpeg', ['-v', 'error', '-i', url('talk.flv?session=me'), '-f', 'null', '-']);
  t.teardown(() => player.stop());
  const sessions = '/v1/vhosts/default/apps/app/streams/talk/sessions';
  await until('it is listed', async () => (await kiln.api<string[]>(sessions)).body.response.includes('me'));
  const { body } = await kiln.api<Statistics>('/v2/stats/current/vhosts/default/apps/app');
  t.true((body.response.publishers.connections.flv ?? 0) > 0);
  await until('bytes', async () => {
    const answer = await kiln.api<{ readonly totalBytesOut: number }>(`/v1/stats/current${sessions.slice(3)}/me`);
    return answer.body.response.totalBytesOut > 10_000;
  });
  t.is((await kiln.api(`${sessions}/me`, 'DELETE')).status, 200);
  await player.exited();
  t.false((await kiln.api<string[]>(sessions)).body.response.includes('me'));
});
