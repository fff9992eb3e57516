import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { startGst, GST } from '../support/rtsp/gst-rtsp.ts';
import { long } from '../support/runner/long.ts';
import { playRtsp, type Played } from '../support/rtsp/rtsp-player.ts';
import { until, untilWorks } from '../support/time/until.ts';
import { startVlc } from '../support/rtsp/vlc-rtsp.ts';

const seconds = (packet: Played['packets'][number] | undefined): number =>
  packet === undefined ? NaN : (packet.pts * packet.track.timebase.num) / packet.track.timebase.den;

/** Waits for pictures and sound of more than a second, and that they go on evenly and together. */
async function watch(t: ExecutionContext, played: Played, codecs: readonly string[]): Promise<void> {
  const hasAnotherKey = () => played.of('video').some(({ key }, i) => i > 0 && key);
  await until(
    'a second of everything, and another key frame',
    () =>
      hasAnotherKey() &&
      codecs.every((codec) => {
        const own = played.packets.filter(({ track }) => track.codec === codec);
        return seconds(own.at(-1)) - seconds(own[0]) > 1.2;
      }),
  );
  t.deepEqual(
    played.told.at(-1)?.map(({ codec }) => codec),
    codecs,
  );
  t.deepEqual(played.ends, []);
  const video = played.of('video');
  t.true(video[0]?.key);
  t.true(video.some(({ key }) => !key));
  for (const packets of [video, played.of('audio')]) {
    for (let i = 1; i < packets.length; i++) {
      const [one, other] = [packets[i - 1], packets[i]] as [(typeof packets)[0], (typeof packets)[0]];
      t.true(other.dts > one.dts);
      t.true(other.pts >= other.dts);
    }
  }
  if (played.of('audio').length === 0) return;
  const newest = (type: 'video' | 'audio') => seconds(played.of(type).at(-1));
  // either may be held up on its way
  await until('sound and picture are together', () => Math.abs(newest('video') - newest('audio')) < 0.5);
}

const CASES: readonly (readonly [name: string, pipeline: string, codecs: readonly string[]])[] = [
  ['H.264 and AAC', `${GST.h264()} ${GST.aac()}`, ['H264', 'AAC']],
  ['H.265 and LATM', `${GST.h265()} ${GST.latm()}`, ['H265', 'AAC']],
  ['VP8 and Opus', `${GST.vp8()} ${GST.opus()}`, ['VP8', 'OPUS']],
  ['H.264 with B-frames and A-law', `${GST.h264BFrames()} ${GST.pcma()}`, ['H264', 'PCMA']],
  ['H.264 and MP3', `${GST.h264()} ${GST.mp3()}`, ['H264', 'MP3']],
];

for (const [name, pipeline, codecs] of CASES) {
  for (const transport of ['tcp', 'udp'] as const) {
    long(`${name} of GStreamer over ${transport.toUpperCase()}`, async (t) => {
      const server = await startGst(t, { mounts: { '/live': `( ${pipeline} )` }, protocols: [transport] });
      const played = await playRtsp(t, server.url('/live'));
      t.is(played.source.connection?.transport, transport.toUpperCase() as 'TCP');
      await watch(t, played, codecs);
    });
  }
}

for (const method of ['digest', 'basic'] as const) {
  test.serial(`a server of GStreamer that wants ${method} authorization`, async (t) => {
    const server = await startGst(t, {
      mounts: { '/live': `( ${GST.h264()} )` },
      auth: { user: 'viewer', password: 's p@ce', method },
    });
    const played = await playRtsp(t, server.url('/live', 'viewer:s%20p%40ce@'));
    await watch(t, played, ['H264']);
    await t.throwsAsync(playRtsp(t, server.url('/live', 'viewer:wrong@')), { message: /401/ });
    await t.throwsAsync(playRtsp(t, server.url('/live')), { message: /401/ });
    await t.throwsAsync(playRtsp(t, server.url('/none', 'viewer:s%20p%40ce@')), { message: /404/ });
  });
}

long('a file that GStreamer plays to several clients goes on for those that it has', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-test-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'a.mp4');
  const pictures = ['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=25', '-t', '60', '-pix_fmt', 'yuv420p'];
  await promisify(execFile)('ffmpeg', ['-v', 'error', ...pictures, '-c:v', 'libx264', '-g', '25', '-bf', '0', file]);
  const server = await startGst(t, {
    mounts: { '/file': `( filesrc location=${file} ! qtdemux ! h264parse ! rtph264pay name=pay0 pt=96 )` },
  });
  const one = await playRtsp(t, server.url('/file'));
  await until('three seconds', () => one.of('video').length >= 75);
  const other = await playRtsp(t, server.url('/file'));
  const before = one.of('video').length;
  await until('both play', () => other.of('video').length >= 50 && one.of('video').length >= before + 50);
  const [first, ...later] = one.of('video').map(({ data }) => data);
  t.false(
    later.some((data) => data.equals(first as Buffer)),
    'the beginning comes again',
  );
});

for (const [name, mux] of [
  ['tracks', undefined],
  ['a transport stream', 'ts'],
] as const) {
  long(`${name} of VLC`, async (t) => {
    const url = await startVlc(t, mux);
    const played = await untilWorks('VLC plays', () => playRtsp(t, url));
    await watch(t, played, ['H264', 'AAC']);
  });
}
