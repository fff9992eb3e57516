import { h264 } from './flv-media.ts';
import type { Kiln } from '../server/kiln.ts';
import { inRealTime } from '../time/real-time.ts';
import { RtmpClient } from './rtmp-client.ts';

const FRAME_MS = 40;

/** Publishes a small picture by RTMP, over and over in real time: enough for a stream to be listed, seen to flow, and ended. */
export class PictureClient {
  readonly client: RtmpClient;
  readonly #end: () => void;

  private constructor(client: RtmpClient, gop: number) {
    this.client = client;
    const {
      config,
      frames: [key, ...others],
    } = h264();
    const frames = Array.from({ length: gop }, (_, n) => (n === 0 ? key : others[0]) as Buffer);
    client.metadata({ videocodecid: 7, width: 640, height: 360 });
    client.video(config, 0);
    const units = frames.map((body, at) => ({ time: at * FRAME_MS, body }));
    this.#end = inRealTime(units, frames.length * FRAME_MS, ({ body }, time) => client.video(body, time));
    client.socket.once('close', this.#end);
  }

  /**
   * @param gop of how many frames one is a key frame
   * @throws when the server refuses
   */
  static async publish(
    node: Pick<Kiln, 'ports'> & { readonly address?: string },
    name: string,
    app = 'app',
    host?: string,
    gop = 2,
  ): Promise<PictureClient> {
    return PictureClient.of(
      await RtmpClient.publish(name, { port: node.ports.rtmp, address: node.address, app, host }),
      gop,
    );
  }

  /** Sends it over a connection that publishes already. */
  static of(client: RtmpClient, gop = 2): PictureClient {
    return new PictureClient(client, gop);
  }

  get ended(): boolean {
    return this.client.socket.closed;
  }

  close(): void {
    this.#end();
    this.client.close();
  }
}
