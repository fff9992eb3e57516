import type { ExecutionContext } from 'ava';
import type { Host } from '../network/hosts.ts';
import { Kiln } from '../server/kiln.ts';
import { PictureClient } from '../rtmp/picture-client.ts';

/** A server that is in no cluster, from which streams are pulled over OVT; it is gone after the test. */
export class Origin {
  readonly kiln: Kiln;
  readonly #streams = new Map<string, PictureClient>();

  private constructor(kiln: Kiln) {
    this.kiln = kiln;
  }

  static start(t: Pick<ExecutionContext, 'teardown'>, ...streams: string[]): Promise<Origin> {
    return Origin.on(t, undefined, ...streams);
  }

  /** @param host where it runs; on this machine when undefined */
  static async on(
    t: Pick<ExecutionContext, 'teardown'>,
    host: Host | undefined,
    ...streams: string[]
  ): Promise<Origin> {
    const origin = new Origin(await Kiln.start({ ovt: true, host }));
    t.teardown(() => origin.stop());
    for (const stream of streams) await origin.publish(stream);
    return origin;
  }

  /** @param gop of how many frames one is a key frame */
  async publish(stream: string, gop?: number): Promise<void> {
    this.#streams.set(stream, await PictureClient.publish(this.kiln, stream, undefined, undefined, gop));
    await this.kiln.liveStream(stream);
  }

  end(stream: string): void {
    this.#streams.get(stream)?.close();
    this.#streams.delete(stream);
  }

  url(stream: string): string {
    return this.kiln.ovtUrl(stream);
  }

  /** How many pull a stream. */
  async pullers(stream: string): Promise<number> {
    const { body } = await this.kiln.api<{ connections?: { ovt?: number } }>(
      `/v1/stats/current/vhosts/default/apps/app/streams/${stream}`,
    );
    return body.response?.connections?.ovt ?? 0;
  }

  async stop(): Promise<void> {
    for (const client of this.#streams.values()) client.close();
    await this.kiln.stop();
  }
}
