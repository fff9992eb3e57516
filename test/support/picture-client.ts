import { h264 } from './flv-media.ts';
import type { Kiln } from './kiln.ts';
import { inRealTime } from './real-time.ts';
import { RtmpClient } from './rtmp-client.ts';

const FRAME_MS = 40;

/** Publishes a small picture by RTMP, over and over in real time: enough for a stream to be listed, seen to flow, and ended. */
export class PictureClient {
  readonly client: RtmpClient;
  readonly #end: () => void;

  private constructor(client: RtmpClient) {
    this.client = client;
    const { config, frames } = h264();
    client.metadata({ videocodecid: 7, width: 640, height: 360 });
    client.video(config, 0);
    const units = frames.map((body, at) => ({ time: at * FRAME_MS, body }));
    this.#end = inRealTime(units, frames.length * FRAME_MS, ({ body }, time) => client.video(body, time));
    client.socket.once('close', this.#end);
  }

  /** @throws when the server refuses */
  static async publish(node: Pick<Kiln, 'ports'>, name: string, app = 'app', host?: string): Promise<PictureClient> {
    return new PictureClient(await RtmpClient.publish(name, { port: node.ports.rtmp, app, host }));
  }

  get ended(): boolean {
    return this.client.socket.closed;
  }

  close(): void {
    this.#end();
    this.client.close();
  }
}
