import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { aac } from '../support/media/aac.ts';
import { encodersOf } from '../support/programs/encoders.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { AAC, BYPASS, LONG_LLHLS, ladderXml, video } from '../support/media/ladder-config.ts';
import type { Recording } from '../support/hls/llhls-recording.ts';
import { long } from '../support/runner/long.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { moreSegments, playFaults, recordings, trackOf } from '../support/hls/renditions.ts';
import { until } from '../support/time/until.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264 } from '../support/webrtc/webrtc-media.ts';
import { writeScript } from '../support/programs/script.ts';

const LADDER = ladderXml([BYPASS, video(180, 200), AAC], {
  playlists:
    '<Playlist><Name>source</Name><FileName>source</FileName>' +
    '<Rendition><Name>source</Name><Video>source</Video></Rendition></Playlist>',
});

async function start(t: ExecutionContext, options: KilnOptions = {}): Promise<Kiln> {
  const kiln = await Kiln.start({ llhls: LONG_LLHLS, application: LADDER, ...options });
  t.teardown(() => kiln.stop());
  return kiln;
}

function publish(t: ExecutionContext, kiln: Kiln): void {
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '640x360', bitrate: '400k' });
  t.teardown(() => publisher.stop());
}

/** An ffmpeg that does not start as long as there is a file. */
async function haltedFfmpeg(t: ExecutionContext): Promise<{ path: string; halt: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-halted-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const halt = join(folder, 'halt');
  const path = writeScript(join(folder, 'start'), `while [ -e ${halt} ]; do sleep 0.05; done\nexec ffmpeg "$@"`);
  return { path, halt };
}

const statusOf = async (kiln: Kiln) => (await trackOf(kiln, '180p'))?.video?.codecStatus;

/** The only ffmpeg of the server. */
async function encoder(kiln: Kiln): Promise<number> {
  return until('an encoder', () => encodersOf(kiln.pid)[0]);
}

const times = ({ frames }: Recording, count = Infinity) => frames.slice(0, count).map(({ pts }) => pts);
/** Seconds that no frame lasts: one that starts anew a frame before a key frame begins the segment with its own. */
const LONGEST_FRAME = 0.036;
/** Whether segments begin with key frames of the same time. */
const beginTogether = (one: Recording, other: Recording) =>
  one.segments.every(({ frames: [first] }, i) => {
    const { frames: [same] = [] } = other.segments[i] ?? {};
    return same === undefined || (first?.key === true && Math.abs(first.pts - same.pts) < LONGEST_FRAME);
  });

test.serial(
  'encoders that are killed come back and lose nothing; viewers of the source as it is notice nothing',
  async (t) => {
    const { path, halt } = await haltedFfmpeg(t);
    const kiln = await start(t, { env: { KILN_FFMPEG: path } });
    publish(t, kiln);
    await kiln.liveStream('live');
    const peer = new ViewerPeer({ audio: false });
    t.teardown(() => peer.close());
    await peer.play(kiln.httpUrl('/app/live/source?direction=whep'));
    await peer.until(() => peer.frames().length > 0);
    for (let round = 0; round < 2; round++) {
      const pid = await encoder(kiln);
      await writeFile(halt, '');
      process.kill(pid, 'SIGKILL');
      await until('it has failed', async () => (await statusOf(kiln)) === 'Failed');
      await rm(halt);
      await until('another works', async () => (await statusOf(kiln)) === 'Ready');
      t.not(await encoder(kiln), pid);
      await moreSegments(kiln, ['180p'], 2);
    }
    t.is(encodersOf(kiln.pid).length, 1);
    t.like((await trackOf(kiln, 'source'))?.video, { codecStatus: 'Ready', configChangeCount: 0 });
    t.like((await trackOf(kiln, '180p'))?.video, { configChangeCount: 0 });
    const [source, high, sound] = (await recordings(kiln, ['source', '180p', 'aac'])) as [
      Recording,
      Recording,
      Recording,
    ];
    for (const one of [source, high, sound]) t.deepEqual(playFaults(one), []);
    t.true(beginTogether(high, source));
    t.deepEqual(times(high, source.frames.length), times(source, high.frames.length), 'every frame, once');
    await peer.until(() => peer.frames().length > 91);
    const seen = peer.frames().map(({ timestamp }) => timestamp);
    const steps = seen.slice(1).map((timestamp, i) => (timestamp - (seen[i] ?? 0)) >>> 0);
    t.true(
      steps.every((step) => step > 2800 && step < 3200),
      'a WebRTC viewer misses no frame',
    );
  },
);

long('an encoder that hangs is detected; viewers of the source as it is notice nothing', async (t) => {
  const kiln = await start(t);
  publish(t, kiln);
  await kiln.liveStream('live');
  await moreSegments(kiln, ['180p'], 2);
  const pid = await encoder(kiln);
  process.kill(pid, 'SIGSTOP');
  await moreSegments(kiln, ['source'], 3);
  t.is(await encoder(kiln), pid, 'the source goes on while its encoder does not');
  await until('the encoder has failed', () =>
    /EGRESS_TRANSCODE_FAILED_ENCODING.*180p.*ffmpeg (produces no output|does not read its input)/.test(kiln.log),
  );
  await until('the encoder is back', async () => (await statusOf(kiln)) === 'Ready');
  t.not(await encoder(kiln), pid);
  await moreSegments(kiln, ['180p'], 2);
  const [source, high] = await until('it has caught up', async () => {
    const both = (await recordings(kiln, ['source', '180p'])) as [Recording, Recording];
    const [last, same] = both.map(({ segments }) => segments.at(-1)?.msn);
    return last === same && both;
  });
  t.deepEqual(playFaults(source), []);
  const there = new Set(times(source));
  t.true(high.segments.at(-1)?.frames.every(({ pts }) => there.has(pts)));
});

test.serial('without an ffmpeg the source plays as it is, and what would have to be encoded has failed', async (t) => {
  const kiln = await start(t, { env: { KILN_FFMPEG: '/bin/true' } });
  publish(t, kiln);
  await kiln.liveStream('live');
  const [source] = (await moreSegments(kiln, ['source'], 3)) as [Recording];
  t.deepEqual(playFaults(source), []);
  t.is((await trackOf(kiln, 'source'))?.video?.codecStatus, 'Ready');
  t.is((await trackOf(kiln, '180p'))?.video?.codecStatus, 'Failed');
  t.is((await trackOf(kiln, 'aac'))?.audio?.codecStatus, 'Failed');
  t.regex(kiln.log, /KILN_FFMPEG is no ffmpeg that runs/);
  t.regex(kiln.log, /EGRESS_TRANSCODE_FAILED_ENCODING.*180p of output profile ladder is not encoded/);
  t.is((await fetch(`http://127.0.0.1:${kiln.ports.api}/readyz`)).status, 200);
});

long('a source changes its size and its sample rate: what is encoded stays as it was and goes on', async (t) => {
  const kiln = await start(t, { application: ladderXml([video(88, 100), AAC]) });
  const size = (width: number, height: number) => h264({ width, height, fps: 25, gop: 25, seconds: 2 });
  const publisher = await MediaPublisher.start(kiln.ports.rtmp, 'live', [
    { video: await size(320, 180), audio: await aac(440) },
    { video: await size(640, 360), audio: await aac(440, { samplerate: 44_100 }) },
  ]);
  t.teardown(() => publisher.close());
  await kiln.liveStream('live');
  await until('the source has changed', async () => {
    const { input } = (await kiln.stream('live')).body.response;
    return (input.tracks[0]?.video?.configChangeCount ?? 0) >= 2;
  });
  const [picture, sound] = (await moreSegments(kiln, ['88p', 'aac'], 5)) as [Recording, Recording];
  t.like((await trackOf(kiln, '88p'))?.video, { width: 156, height: 88, configChangeCount: 0, codecStatus: 'Ready' });
  t.like((await trackOf(kiln, 'aac'))?.audio, { samplerate: 48_000, configChangeCount: 0, codecStatus: 'Ready' });
  t.is(picture.frames[0]?.pts, 0, 'from the first frame on');
  t.deepEqual(playFaults(picture), []);
  t.false(sound.segments.some(({ gap, discontinuity }) => gap || discontinuity));
});
