import type { ExecutionContext } from 'ava';
import { h264 } from './flv-media.ts';
import { Kiln } from './kiln.ts';
import { inRealTime } from './real-time.ts';
import { RtmpClient } from './rtmp-client.ts';

const FRAME_MS = 40;

/** Publishes one picture after the other, in real time, until it is called again. */
export async function publishPicture(port: number, stream: string): Promise<() => void> {
  const client = await RtmpClient.publish(stream, { port });
  const { config, frames } = h264();
  client.metadata({ videocodecid: 7, width: 640, height: 360 });
  client.video(config, 0);
  const units = frames.map((body, at) => ({ time: at * FRAME_MS, body }));
  const end = inRealTime(units, frames.length * FRAME_MS, ({ body }, time) => client.video(body, time));
  client.socket.once('close', end);
  return () => {
    end();
    client.close();
  };
}

/** A server that is in no cluster, from which streams are pulled over OVT; it is gone after the test. */
export class Origin {
  readonly kiln: Kiln;
  readonly #streams = new Map<string, () => void>();

  private constructor(kiln: Kiln) {
    this.kiln = kiln;
  }

  static async start(t: Pick<ExecutionContext, 'teardown'>, ...streams: string[]): Promise<Origin> {
    const origin = new Origin(await Kiln.start({ ovt: true }));
    t.teardown(() => origin.stop());
    for (const stream of streams) await origin.publish(stream);
    return origin;
  }

  async publish(stream: string): Promise<void> {
    this.#streams.set(stream, await publishPicture(this.kiln.ports.rtmp, stream));
    await this.kiln.liveStream(stream);
  }

  end(stream: string): void {
    this.#streams.get(stream)?.();
    this.#streams.delete(stream);
  }

  url(stream: string): string {
    return this.kiln.ovtUrl(stream);
  }

  /** How many pull a stream. */
  async pullers(stream: string): Promise<number> {
    const { body } = await this.kiln.api<{ connections?: { ovt?: number } }>(`/v1/stats/current/vhosts/default/apps/app/streams/${stream}`);
    return body.response?.connections?.ovt ?? 0;
  }

  async stop(): Promise<void> {
    for (const end of this.#streams.values()) end();
    await this.kiln.stop();
  }
}
