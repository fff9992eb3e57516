import test, { type ExecutionContext } from 'ava';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import type { AudioTrack } from '../../src/core/track.ts';
import { beeps, flashes, loudness } from '../support/media/decoded.ts';
import { publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { AAC, BYPASS, LONG_LLHLS, OPUS, ladderXml, video } from '../support/media/ladder-config.ts';
import type { Recording } from '../support/hls/llhls-recording.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { moreSegments, playFaults } from '../support/hls/renditions.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';
import { shared } from '../support/runner/shared.ts';

const OPUS_SAMPLES = 960;
const OPUS_TRACK: AudioTrack = {
  id: 0,
  name: 'sound',
  type: 'audio',
  codec: 'OPUS',
  timebase: { num: 1, den: 48_000 },
  bypass: true,
  samplerate: 48_000,
  channels: 2,
  bitrate: 0,
};
/** Of full scale; ffmpeg's sine has an eighth. */
const AUDIBLE = 0.05;

const undo = new Teardown();
test.after.always(() => undo.run());

async function start(options: KilnOptions = {}): Promise<Kiln> {
  const kiln = await Kiln.start({ llhls: LONG_LLHLS, ...options });
  undo.teardown(() => kiln.stop());
  return kiln;
}

/** A server without output profiles. */
let plain: Kiln;
test.before(async () => {
  plain = await start();
});

/** Each track of the only output stream, by name. */
function tracksOf({ outputs }: StreamInfo) {
  return Object.fromEntries((outputs[0]?.tracks ?? []).map((track) => [track.name, track]));
}

/** The sound of a WebRTC viewer of a stream, whose picture comes too. */
async function soundOfViewer(t: ExecutionContext, stream: string): Promise<number> {
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  await peer.play(plain.httpUrl(`/app/${stream}?direction=whep`));
  await peer.until(() => peer.frames().length >= 10 && peer.packets.audio.length >= 50);
  return loudness(
    OPUS_TRACK,
    peer.packets.audio.map(({ payload }) => payload),
    OPUS_SAMPLES,
  );
}

/** Plays a stream in WebRTC and in LL-HLS. @returns its loudness in WebRTC, and two seconds of AAC */
async function play(t: ExecutionContext, stream: string): Promise<[number, Recording]> {
  const [heard, [sound]] = await Promise.all([soundOfViewer(t, stream), moreSegments(plain, ['aac'], 2, { stream })]);
  return [heard, sound as Recording];
}

test('without a profile, a source with AAC has sound in WebRTC and in LL-HLS', async (t) => {
  const publisher = publishPattern(plain.rtmpUrl('aac'), { size: '160x90' });
  t.teardown(() => publisher.stop());
  const { opus: encoded, aac: passed } = tracksOf(await plain.liveStream('aac'));
  t.like(encoded?.audio, {
    bypass: false,
    codec: 'OPUS',
    codecModule: 'libopus',
    codecStatus: 'Ready',
    bitrateConf: 128_000,
  });
  t.like(passed?.audio, { bypass: true, codec: 'AAC', codecStatus: 'Ready' });
  const [heard, sound] = await play(t, 'aac');
  t.true(heard > AUDIBLE);
  t.true(sound.frames.length >= 90);
});

test('without a profile, a source with Opus has sound in WebRTC and in LL-HLS', async (t) => {
  const scene = { video: await h264({ width: 160, height: 90, seconds: 2, gop: 30 }), audio: await opus(2) };
  const publisher = await MediaPublisher.start(plain.ports.rtmp, 'opus', [scene]);
  t.teardown(() => publisher.close());
  const { opus: passed, aac: encoded } = tracksOf(await plain.liveStream('opus'));
  t.like(passed?.audio, { bypass: true, codec: 'OPUS', codecStatus: 'Ready' });
  t.like(encoded?.audio, { bypass: false, codec: 'AAC', codecModule: 'aac', codecStatus: 'Ready' });
  const [heard, sound] = await play(t, 'opus');
  t.true(heard > AUDIBLE);
  t.deepEqual(playFaults(sound), []);
  t.true(sound.frames.length >= 90);
});

const IN_STEP_SECONDS = 0.04;
/** Of what begins in the midst of a flash or a beep, or just before, that one is not counted. */
const SETTLED_SECONDS = 0.5;

/** A flash and a beep at every full second. */
const FLASH = 'if(lt(mod(t,1),0.1),sin(2*PI*1000*t)/2,0)';
const FLASHES = {
  source: "color=black:size=640x360:rate=30,drawbox=color=white:t=fill:enable='lt(mod(t,1),0.1)'",
  sound: `aevalsrc='${FLASH}|${FLASH}':s=48000`,
  bitrate: '400k',
};

const LADDER = ladderXml(
  [
    BYPASS,
    video(180, 200, '<KeyFrameInterval>30</KeyFrameInterval>'),
    video(88, 80, '<Framerate>15</Framerate>'),
    '<Video><Name>unknown</Name><Codec>foo</Codec><Height>88</Height><Bitrate>80000</Bitrate></Video>',
    AAC,
    OPUS,
    '<Image><Name>preview</Name><Codec>jpeg</Codec><Framerate>1</Framerate><Height>88</Height></Image>',
  ],
  {
    playlists:
      '<Playlist><Name>all</Name><FileName>all</FileName>' +
      ['source', '180p', '88p']
        .map((name) => `<Rendition><Name>${name}</Name><Video>${name}</Video><Audio>aac</Audio></Rendition>`)
        .join('') +
      '<Rendition><Name>opus</Name><Video>88p</Video><Audio>opus</Audio></Rendition></Playlist>',
  },
);

const NAMES = ['source', '180p', '88p', 'aac', 'opus'] as const;
type Name = (typeof NAMES)[number];

/** Names of the tracks of a ladder, six seconds of those that LL-HLS plays, and the tracks as the API lists them then. */
async function recordLadder() {
  const kiln = await start({ application: LADDER });
  const publisher = publishPattern(kiln.rtmpUrl('live'), FLASHES);
  undo.teardown(() => publisher.stop());
  const names = Object.keys(tracksOf(await kiln.liveStream('live')));
  const recordings = await moreSegments(kiln, NAMES, 6, { playlist: 'all' });
  const tracks = tracksOf((await kiln.stream('live')).body.response);
  await publisher.stop();
  const recorded = Object.fromEntries(NAMES.map((name, i) => [name, recordings[i]])) as Record<Name, Recording>;
  return { names, recorded, tracks, log: kiln.log };
}

const recordedLadder = shared(recordLadder);

test('API: tracks of a ladder are listed in the order of its profile', async (t) => {
  const { names } = await recordedLadder();
  t.deepEqual(names, ['source', '180p', '88p', 'unknown', 'aac', 'opus', 'preview']);
});

test('API: the bypassed video of a ladder has the properties of its source, and no encoder', async (t) => {
  const { source } = (await recordedLadder()).tracks;
  t.like(source?.video, {
    bypass: true,
    codec: 'H264',
    codecStatus: 'Ready',
    width: 640,
    height: 360,
    keyFrameIntervalConf: 0,
  });
  t.is(source?.video?.codecModule, undefined);
});

test('API: encoded video of a ladder has configured properties beside measured ones', async (t) => {
  const { '180p': p180, '88p': p88 } = (await recordedLadder()).tracks;
  t.like(p180?.video, {
    bypass: false,
    codec: 'H264',
    codecModule: 'x264',
    codecStatus: 'Ready',
    width: 320,
    height: 180,
    bitrate: 200_000,
    bitrateConf: 200_000,
    framerateConf: 0,
    keyFrameInterval: 30,
    keyFrameIntervalConf: 30,
    keyFrameIntervalLatest: 30,
    hasBframes: false,
    configChangeCount: 0,
    timebase: { num: 1, den: 90_000 },
  });
  t.is(Math.round(p180?.video?.framerate ?? 0), 30, 'measured, where none is configured');
  t.like(p88?.video, {
    bypass: false,
    codecStatus: 'Ready',
    width: 156,
    height: 88,
    framerate: 15,
    framerateConf: 15,
    keyFrameInterval: 15,
    keyFrameIntervalConf: 0,
    keyFrameIntervalLatest: 15,
  });
  t.true((p88?.video?.bitrateAvg ?? 0) > 1000);
});

test('an unknown video codec in a ladder fails its track alone, and the log names the codec', async (t) => {
  const { tracks, log } = await recordedLadder();
  t.like(tracks.unknown?.video, { bypass: false, codecModule: 'none', codecStatus: 'Failed' });
  t.is(tracks.unknown?.video?.bitrateAvg, undefined);
  t.regex(log, /EGRESS_TRANSCODE_FAILED_ENCODING.*unknown of output profile ladder is not encoded: unknown codec foo/);
});

test('API: audio and images of a ladder have the configured codecs', async (t) => {
  const { aac, opus: second, preview } = (await recordedLadder()).tracks;
  t.like(aac?.audio, {
    codec: 'AAC',
    codecModule: 'aac',
    codecStatus: 'Ready',
    bitrateConf: 64_000,
    samplerate: 48_000,
    channel: 2,
  });
  t.like(second?.audio, {
    codec: 'OPUS',
    codecModule: 'libopus',
    codecStatus: 'Ready',
    bitrateConf: 64_000,
    samplerate: 48_000,
  });
  t.like(preview?.video, { codec: 'JPEG', codecStatus: 'Ready', framerateConf: 1, width: 156, height: 88 });
});

test('key frames of a ladder are aligned, and no frame of its source is missing or moved', async (t) => {
  const { source, '180p': high, '88p': low } = (await recordedLadder()).recorded;
  // encoders that take too long to start are not waited for
  const pictures = [source, high, low];
  const from = Math.max(...pictures.map(({ segments }) => segments[0]?.msn ?? Infinity));
  const to = Math.min(...pictures.map(({ segments }) => segments.at(-1)?.msn ?? -Infinity));
  const common = ({ segments }: Recording) => segments.filter(({ msn }) => msn >= from && msn <= to);
  t.true(common(source).length > 4);
  const keys = (one: Recording) =>
    common(one).map(({ frames }) => frames.filter(({ key }) => key).map(({ pts }) => pts));
  t.deepEqual(keys(high), keys(source));
  t.deepEqual(keys(low), keys(source));
  const times = (one: Recording) => common(one).flatMap(({ frames }) => frames.map(({ pts }) => pts));
  t.deepEqual(times(high), times(source), 'every frame, with its time');
});

test('video and audio of every rendition of a ladder are in step with its source', async (t) => {
  const { recorded } = await recordedLadder();
  const [flashed = [], ...signals] = await Promise.all([
    flashes(recorded.source),
    flashes(recorded['180p']),
    flashes(recorded['88p']),
    beeps(recorded.aac),
    beeps(recorded.opus),
  ]);
  const begin = Math.max(...Object.values(recorded).map(({ frames: [first] }) => first?.pts ?? Infinity));
  const compared = flashed.filter((time) => time > begin + SETTLED_SECONDS).slice(0, 4);
  t.is(compared.length, 4);
  for (const signal of signals) {
    for (const time of compared) {
      const apart = Math.min(...signal.map((other) => Math.abs(other - time)));
      t.true(apart < IN_STEP_SECONDS, `${signal.join()} beside ${flashed.join()}`);
    }
  }
});
