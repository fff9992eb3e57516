import { RtmpClient } from '../rtmp-client.ts';
import type { Clip } from './clip.ts';
import { monotonic, STAMP_BYTES, writeStamp } from './stamp.ts';

/** Tag header in front of a video body's NAL units: frame type and codec, packet type, composition time. */
const VIDEO_HEAD = 5;

/** Publishes a clip over RTMP in a loop, in real time, with a stamp in every frame. */
export class LivePublisher {
  readonly #client: RtmpClient;
  readonly #clip: Clip;
  readonly #started = monotonic();
  #next = 0;
  #frames = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(client: RtmpClient, clip: Clip) {
    this.#client = client;
    this.#clip = clip;
    client.video(clip.videoConfig, 0);
    client.audio(clip.audioConfig, 0);
    this.#send();
  }

  /** @throws when the server refuses */
  static async start(port: number, stream: string, clip: Clip): Promise<LivePublisher> {
    return new LivePublisher(await RtmpClient.publish(stream, { port }), clip);
  }

  /** When its first frame left, in milliseconds of the stamps' clock. */
  get started(): number {
    return this.#started;
  }

  get frames(): number {
    return this.#frames;
  }

  get connected(): boolean {
    return !this.#client.socket.destroyed;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#client.close();
  }

  /** Sends what is due and sleeps until the next unit is. */
  #send(): void {
    const { units, length } = this.#clip;
    for (;;) {
      const unit = units[this.#next % units.length];
      if (unit === undefined || !this.connected) return;
      const time = Math.floor(this.#next / units.length) * length + unit.time;
      const wait = this.#started + time - monotonic();
      if (wait > 0.5) {
        this.#timer = setTimeout(() => this.#send(), wait);
        return;
      }
      this.#next++;
      if (unit.type === 'audio') this.#client.audio(unit.body, Math.round(time));
      else this.#video(unit.body, Math.round(time));
    }
  }

  #video(body: Buffer, time: number): void {
    const stamped = Buffer.allocUnsafe(body.length + STAMP_BYTES);
    body.copy(stamped, 0, 0, VIDEO_HEAD);
    body.copy(stamped, VIDEO_HEAD + STAMP_BYTES, VIDEO_HEAD);
    writeStamp(stamped, VIDEO_HEAD, this.#frames++);
    this.#client.video(stamped, time);
  }
}
