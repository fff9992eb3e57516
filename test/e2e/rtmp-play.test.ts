import { execFile, spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { codecsOf, probe } from '../support/media/probe.ts';
import { Program, publishPattern } from '../support/media/ffmpeg.ts';
import { asNobody } from '../support/programs/as-nobody.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { Kiln } from '../support/server/kiln.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const run = promisify(execFile);

const undo = new Teardown();
let kiln: Kiln;

test.before(async () => {
  kiln = await Kiln.start({ rtmpPlay: true });
  undo.teardown(() => kiln.stop());
  const publisher = publishPattern(kiln.rtmpUrl('talk'), PICTURE);
  undo.teardown(() => publisher.stop());
  await until('the stream', async () => (await kiln.stream('talk')).status === 200);
});
test.after.always(() => undo.run());

/** Skips a test where a program is not installed. */
const having = (program: string) => (spawnSync('which', [program]).status === 0 ? test : test.skip);

test('ffprobe plays H264 and AAC from a key frame on', async (t) => {
  const probed = await probe(kiln.rtmpUrl('talk'));
  t.deepEqual(codecsOf(probed), ['aac', 'h264']);
  const first = probed.packets.find(({ codec_type }) => codec_type === 'video');
  t.true(first?.flags.startsWith('K'), JSON.stringify(first));
});

test('a player without a GOP cache starts with the next key frame', async (t) => {
  const probed = await probe(kiln.rtmpUrl('talk?gop=0'));
  t.deepEqual(codecsOf(probed), ['aac', 'h264']);
});

test('a playlist is played by its name', async (t) => {
  t.deepEqual(codecsOf(await probe(kiln.rtmpUrl('talk/llhls'))), ['aac', 'h264']);
});

having('rtmpdump')('rtmpdump records a stream', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rtmp-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'out.flv');
  const recorder = new Program('rtmpdump', ['-q', '-v', '-r', kiln.rtmpUrl('talk'), '-o', file]);
  t.teardown(() => recorder.stop());
  await until('some of it', async () => ((await stat(file).catch(() => undefined))?.size ?? 0) > 50_000);
  recorder.signal('SIGTERM');
  await recorder.exited();
  t.deepEqual(codecsOf(await probe(file)), ['aac', 'h264']);
});

having('gst-launch-1.0')('GStreamer plays a stream', async (t) => {
  const played = 'queue ! h264parse ! avdec_h264 ! fakesink num-buffers=20 sync=false';
  const pipeline = `rtmp2src location=${kiln.rtmpUrl('talk')} ! flvdemux name=d d.video ! ${played}`;
  await t.notThrowsAsync(run('gst-launch-1.0', ['-q', ...pipeline.split(' ')], { timeout: PATIENCE_MS }));
});

having('cvlc')('VLC plays a stream', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-rtmp-'));
  t.teardown(() => rm(folder, { recursive: true }));
  await chmod(folder, 0o777);
  const file = join(folder, 'out.ts');
  const vlc = ['cvlc', '-I', 'dummy', '--no-dbus', '--sout', `#std{access=file,mux=ts,dst=${file}}`];
  const player = asNobody([...vlc, kiln.rtmpUrl('talk'), 'vlc://quit'], folder);
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

test('ffmpeg that plays is listed and counted, and ends with the API', async (t) => {
  const player = new Program('ffmpeg', ['-v', 'error', '-i', kiln.rtmpUrl('talk?session=me'), '-f', 'null', '-']);
  t.teardown(() => player.stop());
  const sessions = '/v1/vhosts/default/apps/app/streams/talk/sessions';
  await until('it is listed', async () => (await kiln.api<string[]>(sessions)).body.response.includes('me'));
  const { body } = await kiln.api<Statistics>('/v2/stats/current/vhosts/default/apps/app');
  t.true((body.response.publishers.connections.rtmp ?? 0) > 0);
  await until('bytes', async () => {
    const answer = await kiln.api<{ readonly totalBytesOut: number }>(`/v1/stats/current${sessions.slice(3)}/me`);
    return answer.body.response.totalBytesOut > 10_000;
  });
  t.is((await kiln.api(`${sessions}/me`, 'DELETE')).status, 200);
  await player.exited();
  t.false((await kiln.api<string[]>(sessions)).body.response.includes('me'));
});
