import type { AudioTrack, VideoTrack } from '../../../src/core/track.ts';
import { buildAudioTag, buildVideoTag } from '../rtmp/flv-build.ts';
import { inRealTime } from '../time/real-time.ts';
import { RtmpClient, type RtmpClientOptions } from '../rtmp/rtmp-client.ts';
import type { Media } from '../webrtc/webrtc-media.ts';

/** What a source sends for a while: one picture and one sound. */
export interface Scene {
  readonly video: Media<VideoTrack>;
  readonly audio: Media<AudioTrack>;
}

interface Unit {
  readonly type: 'video' | 'audio';
  /** Milliseconds. */
  readonly time: number;
  readonly body: Buffer;
}

/**
 * Publishes scenes in real time, one after the other and again from the first, on one connection: where the next one
 * begins, the source tells its new configuration. (Enhanced RTMP, where the classic form knows no such codec.)
 */
export class MediaPublisher {
  readonly client: RtmpClient;
  readonly #end: () => void;

  private constructor(client: RtmpClient, scenes: readonly Scene[]) {
    this.client = client;
    const units: Unit[] = [];
    let length = 0;
    for (const scene of scenes) {
      const start = length;
      length += lengthOf(scene.video);
      units.push(...unitsOf(scene, start, length));
    }
    this.#end = inRealTime(units, length, ({ type, body }, time) => {
      if (type === 'video') client.video(body, time);
      else client.audio(body, time);
    });
    client.socket.once('close', this.#end);
  }

  /** @throws when the server refuses */
  static async start(
    port: number,
    stream: string,
    scenes: readonly Scene[],
    options: Omit<RtmpClientOptions, 'port'> = {},
  ): Promise<MediaPublisher> {
    return new MediaPublisher(await RtmpClient.publish(stream, { ...options, port }), scenes);
  }

  close(): void {
    this.#end();
    this.client.close();
  }
}

/** Milliseconds. */
function lengthOf({ track, frames }: Media<VideoTrack | AudioTrack>): number {
  return (frames.reduce((sum, { duration }) => sum + duration, 0) * 1000) / track.timebase.den;
}

function unitsOf({ video, audio }: Scene, start: number, end: number): Unit[] {
  const picture = (packet: 'config' | 'frame', time: number, key: boolean, data: Buffer): Unit => ({
    type: 'video',
    time,
    body: buildVideoTag({ codec: video.track.codec, packet, key, data }),
  });
  const tone = (packet: 'config' | 'frame', time: number, data: Buffer): Unit => ({
    type: 'audio',
    time,
    body: buildAudioTag({ codec: audio.track.codec, packet, data }),
  });
  const frames = [
    ...timed(video, start).map(({ time, key, data }) => picture('frame', time, key, data)),
    ...timed(audio, start)
      .filter(({ time }) => time < end)
      .map(({ time, data }) => tone('frame', time, data)),
  ];
  return [
    ...(video.track.config === undefined ? [] : [picture('config', start, true, video.track.config)]),
    ...(audio.track.config === undefined ? [] : [tone('config', start, audio.track.config)]),
    ...frames.sort((one, other) => one.time - other.time),
  ];
}

function timed({ track, frames }: Media<VideoTrack | AudioTrack>, start: number) {
  let ticks = 0;
  return frames.map(({ duration, key, data }) => {
    const time = start + (ticks * 1000) / track.timebase.den;
    ticks += duration;
    return { time, key, data };
  });
}
