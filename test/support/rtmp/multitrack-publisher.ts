import type { AmfObject } from '../../../src/protocols/rtmp/amf-value.ts';
import { readVideoPart, videoParts } from '../../../src/containers/flv/video.ts';
import { buildAudioTracks, buildVideoTracks } from './flv-build.ts';
import { encodeFlv, type FlvTag } from './flv-file.ts';
import { inRealTime } from '../time/real-time.ts';
import { RtmpClient } from './rtmp-client.ts';

/** Whole numbers of frames of 30 Hz video and of 1024 samples of sound at 48 kHz: the media loop without a seam. */
const SECONDS = 8;
const FRAMERATE = 30;
const SAMPLERATE = 48_000;
const AAC_SAMPLES = 1024;
/** Behind the header of a tag in the classic form. */
const AAC_DATA = 2;
const AUDIO_KBIT = 64;
const X264 = [
  '-c:v',
  'libx264',
  '-preset',
  'ultrafast',
  '-tune',
  'zerolatency',
  '-pix_fmt',
  'yuv420p',
  '-g',
  String(FRAMERATE),
  '-x264-params',
  'scenecut=0',
];

export interface MultitrackOptions {
  /** Of each sound track; the first is plain RTMP, as Enhanced RTMP recommends. */
  readonly languages?: readonly string[];
  /** Of each picture track. */
  readonly sizes?: readonly string[];
}

/**
 * Publishes real media in real time over RTMP, with several tracks by Enhanced RTMP v2: a test picture of each size
 * (H.264, a key frame every second) and a tone of its own for each language (AAC).
 */
export class MultitrackPublisher {
  readonly client: RtmpClient;
  readonly #end: () => void;

  private constructor(client: RtmpClient, description: AmfObject, tracks: readonly EncodedTrack[]) {
    this.client = client;
    client.metadata(description);
    for (const { config } of tracks) send(client, config, 0);
    const units = tracks.flatMap(({ frames }) => frames).sort((one, other) => one.time - other.time);
    this.#end = inRealTime(units, SECONDS * 1000, (unit, time) => send(client, unit, time));
    client.socket.once('close', this.#end);
  }

  /** @throws when the server refuses */
  static async start(port: number, stream: string, options: MultitrackOptions = {}): Promise<MultitrackPublisher> {
    const { languages = ['eng', 'kor'], sizes = ['320x180'] } = options;
    // before it connects: the server ends a publisher that sends nothing
    const tracks = [...sizes.map(pictures), ...languages.map(tones)];
    const client = await RtmpClient.publish(stream, { port });
    return new MultitrackPublisher(client, describe(languages, sizes), tracks);
  }

  close(): void {
    this.#end();
    this.client.close();
  }
}

function send(client: RtmpClient, { type, body }: Omit<FlvTag, 'time'>, time: number): void {
  if (type === 'video') client.video(body, time);
  else client.audio(body, time);
}

function describe(languages: readonly string[], sizes: readonly string[]) {
  const [size = { width: 0, height: 0 }, ...otherSizes] = sizes.map((text) => {
    const [width, height] = text.split('x').map(Number);
    return { width, height };
  });
  const [language, ...others] = languages;
  const numbered = <T>(values: readonly T[]) => Object.fromEntries(values.map((value, index) => [index + 1, value]));
  return {
    ...size,
    framerate: FRAMERATE,
    videocodecid: 7,
    audiocodecid: 10,
    audiodatarate: AUDIO_KBIT,
    language,
    videoTrackIdInfoMap: numbered(otherSizes),
    audioTrackIdInfoMap: numbered(others.map((other) => ({ language: other, channels: 2, samplerate: SAMPLERATE }))),
  };
}

interface EncodedTrack {
  readonly config: FlvTag;
  readonly frames: readonly FlvTag[];
}

function pictures(size: string, trackId: number): EncodedTrack {
  const tags = encodeFlv([
    '-f',
    'lavfi',
    '-i',
    `testsrc2=size=${size}:rate=${FRAMERATE}`,
    '-t',
    String(SECONDS),
    ...X264,
  ]);
  return track(tags, FRAMERATE, ({ body }) => {
    const [part] = videoParts(body);
    const tag = part && readVideoPart(part);
    if (tag === undefined || trackId === 0) return body;
    return buildVideoTracks(tag.packet, body.readUInt8(0) >> 4 === 1, [{ trackId, ...tag }]);
  });
}

function tones(_language: string, trackId: number): EncodedTrack {
  const tags = encodeFlv([
    '-f',
    'lavfi',
    '-i',
    `sine=frequency=${440 * (trackId + 1)}:sample_rate=${SAMPLERATE},aformat=channel_layouts=stereo`,
    '-t',
    String(SECONDS + 1),
    '-c:a',
    'aac',
    '-b:a',
    `${AUDIO_KBIT}k`,
  ]);
  return track(tags, SAMPLERATE / AAC_SAMPLES, ({ body }, isConfig) => {
    if (trackId === 0) return body;
    return buildAudioTracks(isConfig ? 'config' : 'frame', [{ trackId, codec: 'AAC', data: body.subarray(AAC_DATA) }]);
  });
}

/** @param rate frames per second */
function track(tags: readonly FlvTag[], rate: number, body: (tag: FlvTag, isConfig: boolean) => Buffer): EncodedTrack {
  const [config, ...frames] = tags;
  const count = SECONDS * rate;
  if (config === undefined || frames.length < count) throw new Error(`${frames.length} instead of ${count} frames`);
  return {
    config: { ...config, body: body(config, true) },
    frames: frames.slice(0, count).map((tag, i) => ({ ...tag, time: (i * 1000) / rate, body: body(tag, false) })),
  };
}
