import { h264 } from './flv-media.ts';
import type { Kiln } from './kiln.ts';
import { RtmpClient } from './rtmp-client.ts';

const FRAME_MS = 40;

/** Publishes a small picture by RTMP, over and over in real time: enough for a stream to be listed, seen to flow, and ended. */
export class PictureClient {
  readonly client: RtmpClient;
  readonly #timer: NodeJS.Timeout;

  private constructor(client: RtmpClient) {
    this.client = client;
    const { config, frames } = h264();
    client.metadata({ videocodecid: 7, width: 640, height: 360 });
    client.video(config, 0);
    let sent = 0;
    this.#timer = setInterval(() => {
      client.video(frames[sent % frames.length] as Buffer, sent * FRAME_MS);
      sent++;
    }, FRAME_MS);
    client.socket.once('close', () => clearInterval(this.#timer));
  }

  /** @throws when the server refuses */
  static async publish(node: Pick<Kiln, 'ports'>, name: string, app = 'app'): Promise<PictureClient> {
    return new PictureClient(await RtmpClient.publish(name, { port: node.ports.rtmp, app }));
  }

  get ended(): boolean {
    return this.client.socket.closed;
  }

  close(): void {
    clearInterval(this.#timer);
    this.client.close();
  }
}
