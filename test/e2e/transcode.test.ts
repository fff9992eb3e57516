import test, { type ExecutionContext } from 'ava';
import type { StreamInfo } from '../../src/stats/stream-schema.ts';
import type { AudioTrack } from '../../src/core/track.ts';
import { beeps, flashes, loudness } from '../support/media/decoded.ts';
import { Program, publishPattern } from '../support/media/ffmpeg.ts';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { AAC, BYPASS, LONG_LLHLS, OPUS, ladderXml, video } from '../support/media/ladder-config.ts';
import type { Recording } from '../support/hls/llhls-recording.ts';
import { MediaPublisher } from '../support/media/media-publisher.ts';
import { moreSegments, playFaults } from '../support/hls/renditions.ts';
import { ViewerPeer } from '../support/webrtc/viewer-peer.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';

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

async function start(t: ExecutionContext, options: KilnOptions = {}): Promise<Kiln> {
  const kiln = await Kiln.start({ llhls: LONG_LLHLS, ...options });
  t.teardown(() => kiln.stop());
  return kiln;
}

/** Each track of the only output stream, by name. */
function tracksOf({ outputs }: StreamInfo) {
  return Object.fromEntries((outputs[0]?.tracks ?? []).map((track) => [track.name, track]));
}

/** The sound of a WebRTC viewer of `live`, whose picture comes too. */
async function soundOfViewer(t: ExecutionContext, kiln: Kiln): Promise<number> {
  const peer = new ViewerPeer();
  t.teardown(() => peer.close());
  await peer.play(kiln.httpUrl('/app/live?direction=whep'));
  await peer.until(() => peer.frames().length >= 10 && peer.packets.audio.length >= 50);
  return loudness(
    OPUS_TRACK,
    peer.packets.audio.map(({ payload }) => payload),
    OPUS_SAMPLES,
  );
}

test.serial('without a profile, a source with AAC has sound in WebRTC and in LL-HLS', async (t) => {
  const kiln = await start(t);
  const publisher = publishPattern(kiln.rtmpUrl('live'), { size: '160x90' });
  t.teardown(() => publisher.stop());
  const { opus: encoded, aac: passed } = tracksOf(await kiln.liveStream('live'));
  t.like(encoded?.audio, {
    bypass: false,
    codec: 'OPUS',
    codecModule: 'libopus',
    codecStatus: 'Ready',
    bitrateConf: 128_000,
  });
  t.like(passed?.audio, { bypass: true, codec: 'AAC', codecStatus: 'Ready' });
  t.true((await soundOfViewer(t, kiln)) > AUDIBLE);
  const [sound] = await moreSegments(kiln, ['aac'], 2);
  t.true((sound?.frames.length ?? 0) >= 90);
});

test.serial('without a profile, a source with Opus has sound in WebRTC and in LL-HLS', async (t) => {
  const kiln = await start(t);
  const scene = { video: await h264({ width: 160, height: 90, seconds: 2, gop: 30 }), audio: await opus(2) };
  const publisher = await MediaPublisher.start(kiln.ports.rtmp, 'live', [scene]);
  t.teardown(() => publisher.close());
  const { opus: passed, aac: encoded } = tracksOf(await kiln.liveStream('live'));
  t.like(passed?.audio, { bypass: true, codec: 'OPUS', codecStatus: 'Ready' });
  t.like(encoded?.audio, { bypass: false, codec: 'AAC', codecModule: 'aac', codecStatus: 'Ready' });
  t.true((await soundOfViewer(t, kiln)) > AUDIBLE);
  const [sound] = (await moreSegments(kiln, ['aac'], 2)) as [Recording];
  t.deepEqual(playFaults(sound), []);
  t.true(sound.frames.length >= 90);
});

const IN_STEP_SECONDS = 0.04;
/** Of what begins in the midst of a flash or a beep, or just before, that one is not counted. */
const SETTLED_SECONDS = 0.5;

/** A flash and a beep at every full second. */
const FLASH = 'if(lt(mod(t,1),0.1),sin(2*PI*1000*t)/2,0)';
const flashAndBeep = (url: string) =>
  new Program('ffmpeg', [
    '-hide_banner',
    '-nostdin',
    '-loglevel',
    'warning',
    '-re',
    '-f',
    'lavfi',
    '-i',
    "color=black:size=640x360:rate=30,drawbox=color=white:t=fill:enable='lt(mod(t,1),0.1)'",
    '-re',
    '-f',
    'lavfi',
    '-i',
    `aevalsrc='${FLASH}|${FLASH}':s=48000`,
    '-c:v',
    'libx264',
    '-preset',
    'ultrafast',
    '-tune',
    'zerolatency',
    '-pix_fmt',
    'yuv420p',
    '-b:v',
    '400k',
    '-g',
    '30',
    '-keyint_min',
    '30',
    '-sc_threshold',
    '0',
    '-c:a',
    'aac',
    '-b:a',
    '96k',
    '-f',
    'flv',
    url,
  ]);

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

test.serial(
  'a ladder: the API tells the truth of every track, key frames are aligned, picture and sound in step',
  async (t) => {
    const kiln = await start(t, { application: LADDER });
    const publisher = flashAndBeep(kiln.rtmpUrl('live'));
    t.teardown(() => publisher.stop());
    const before = tracksOf(await kiln.liveStream('live'));
    t.deepEqual(Object.keys(before), ['source', '180p', '88p', 'unknown', 'aac', 'opus', 'preview']);
    const recorded = await moreSegments(kiln, ['source', '180p', '88p', 'aac', 'opus'], 6, { playlist: 'all' });
    const [source, high, low, aac, sound] = recorded as [Recording, Recording, Recording, Recording, Recording];

    const {
      source: passed,
      '180p': p180,
      '88p': p88,
      unknown,
      preview,
      ...sounds
    } = tracksOf((await kiln.stream('live')).body.response);
    t.like(passed?.video, {
      bypass: true,
      codec: 'H264',
      codecStatus: 'Ready',
      width: 640,
      height: 360,
      keyFrameIntervalConf: 0,
    });
    t.is(passed?.video?.codecModule, undefined);
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
    t.like(unknown?.video, { bypass: false, codecModule: 'none', codecStatus: 'Failed' });
    t.is(unknown?.video?.bitrateAvg, undefined);
    t.regex(
      kiln.log,
      /EGRESS_TRANSCODE_FAILED_ENCODING.*unknown of output profile ladder is not encoded: unknown codec foo/,
    );
    t.like(sounds.aac?.audio, {
      codec: 'AAC',
      codecModule: 'aac',
      codecStatus: 'Ready',
      bitrateConf: 64_000,
      samplerate: 48_000,
      channel: 2,
    });
    t.like(sounds.opus?.audio, {
      codec: 'OPUS',
      codecModule: 'libopus',
      codecStatus: 'Ready',
      bitrateConf: 64_000,
      samplerate: 48_000,
    });
    t.like(preview?.video, { codec: 'JPEG', codecStatus: 'Ready', framerateConf: 1, width: 156, height: 88 });

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

    const [flashed = [], ...signals] = await Promise.all([
      flashes(source),
      flashes(high),
      flashes(low),
      beeps(aac),
      beeps(sound),
    ]);
    const begin = Math.max(...recorded.map(({ frames: [first] }) => first?.pts ?? Infinity));
    const compared = flashed.filter((time) => time > begin + SETTLED_SECONDS).slice(0, 4);
    t.is(compared.length, 4);
    for (const signal of signals) {
      for (const time of compared) {
        const apart = Math.min(...signal.map((other) => Math.abs(other - time)));
        t.true(apart < IN_STEP_SECONDS, `${signal.join()} beside ${flashed.join()}`);
      }
    }
  },
);
