import { h264 } from './flv-media.ts';
import { inRealTime } from '../time/real-time.ts';
import { OBS_PROPERTIES, RtmpClient, type RtmpClientOptions } from './rtmp-client.ts';

const FRAME_MS = 40;
const GOP = 25;
const RECONNECT = 0x01;

/**
 * Publishes a small picture with a key frame each second, and reconnects when it is asked to, as Enhanced RTMP v2 wants it: it goes
 * on over the old connection to the next key frame, continues from that one over a new connection, and closes the old one.
 */
export class MovingPublisher {
  /** Between two of its key frames. */
  static readonly GOP_MS = GOP * FRAME_MS;
  /** The connection that it publishes by. */
  client: RtmpClient;
  /** Connections that it has made because it was asked to. */
  moves = 0;
  readonly #name: string;
  readonly #options: () => RtmpClientOptions;
  readonly #end: () => void;
  #next: RtmpClient | undefined;
  /** What waits for the next connection to be taken. */
  #waiting: { body: Buffer; time: number }[] | undefined;
  #asked = 0;

  private constructor(client: RtmpClient, name: string, options: () => RtmpClientOptions) {
    this.client = client;
    this.#name = name;
    this.#options = options;
    const { config, frames } = h264();
    client.video(config, 0);
    const units = Array.from({ length: GOP }, (_, n) => ({
      time: n * FRAME_MS,
      key: n === 0,
      body: frames[n === 0 ? 0 : 1] as Buffer,
    }));
    this.#end = inRealTime(units, MovingPublisher.GOP_MS, ({ body, key }, time) => {
      this.#listen();
      if (key && this.#next !== undefined) this.#move(this.#next, config);
      if (this.#waiting === undefined) this.client.video(body, time);
      else this.#waiting.push({ body, time });
    });
  }

  /**
   * @param port of the server that a connection comes to, as a balancer chooses it
   * @throws when the server refuses
   */
  static async start(name: string, port: () => number): Promise<MovingPublisher> {
    const options = (): RtmpClientOptions => ({ port: port(), properties: { ...OBS_PROPERTIES, capsEx: RECONNECT } });
    return new MovingPublisher(await RtmpClient.publish(name, options()), name, options);
  }

  close(): void {
    this.#end();
    for (const client of [this.client, this.#next]) client?.close();
  }

  #listen(): void {
    const requests = this.client.statuses().filter(({ code }) => code === 'NetConnection.Connect.ReconnectRequest');
    if (requests.length <= this.#asked || this.#waiting !== undefined) return;
    this.#asked = requests.length;
    RtmpClient.connect(this.#options()).then(
      (next) => (this.#next = next),
      // it will be asked again
      () => undefined,
    );
  }

  #move(next: RtmpClient, config: Buffer): void {
    this.#next = undefined;
    const waiting: { body: Buffer; time: number }[] = [];
    this.#waiting = waiting;
    next.publish(this.#name).then(
      () => {
        const old = this.client;
        this.client = next;
        this.#waiting = undefined;
        this.#asked = 0;
        this.moves++;
        next.video(config, waiting[0]?.time ?? 0);
        for (const { body, time } of waiting) next.video(body, time);
        old.close();
      },
      () => {
        this.#waiting = undefined;
        next.close();
      },
    );
  }
}
