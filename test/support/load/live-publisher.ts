import { inRealTime } from '../time/real-time.ts';
import { RtmpClient } from '../rtmp/rtmp-client.ts';
import type { Clip } from './clip.ts';
import { monotonic, STAMP_BYTES, writeStamp } from './stamp.ts';

/** Tag header in front of a video body's NAL units: frame type and codec, packet type, composition time. */
const VIDEO_HEAD = 5;

/** Publishes a clip over RTMP in a loop, in real time, with a stamp in every frame. */
export class LivePublisher {
  readonly #client: RtmpClient;
  readonly #started: number;
  readonly #end: () => void;
  #frames: number;

  private constructor(client: RtmpClient, { videoConfig, audioConfig, units, length }: Clip, from: number) {
    this.#client = client;
    this.#frames = from;
    client.video(videoConfig, 0);
    client.audio(audioConfig, 0);
    this.#started = monotonic();
    this.#end = inRealTime(units, length, ({ type, body }, time) => {
      if (type === 'audio') client.audio(body, time);
      else this.#video(body, time);
    });
    client.socket.once('close', this.#end);
  }

  /** @param from number of the first frame @throws when the server refuses */
  static async start(port: number, stream: string, clip: Clip, from = 0, app = 'app'): Promise<LivePublisher> {
    return new LivePublisher(await RtmpClient.publish(stream, { port, app }), clip, from);
  }

  /** When its first frame left, in milliseconds of the stamps' clock. */
  get started(): number {
    return this.#started;
  }

  /** Number of the next frame. */
  get frames(): number {
    return this.#frames;
  }

  get connected(): boolean {
    return !this.#client.socket.destroyed;
  }

  close(): void {
    this.#end();
    this.#client.close();
  }

  #video(body: Buffer, time: number): void {
    const stamped = Buffer.allocUnsafe(body.length + STAMP_BYTES);
    body.copy(stamped, 0, 0, VIDEO_HEAD);
    body.copy(stamped, VIDEO_HEAD + STAMP_BYTES, VIDEO_HEAD);
    writeStamp(stamped, VIDEO_HEAD, this.#frames++);
    this.#client.video(stamped, time);
  }
}
