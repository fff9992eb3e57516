import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../server/kiln.ts';
import { PictureClient } from '../rtmp/picture-client.ts';

const AGAIN_MS = 250;
/** Of a node that does not answer: it may stand still, or be cut off. */
const GIVE_UP_MS = 3000;

/** An encoder that comes back, as encoders do: to the next node, until one takes it. */
export class LastingPublisher {
  readonly name: string;
  readonly #nodes: readonly Kiln[];
  #at: number;
  #client: PictureClient | undefined;
  #closed = false;

  constructor(name: string, nodes: readonly Kiln[], first: number) {
    this.name = name;
    this.#nodes = nodes;
    this.#at = first;
    void this.#run();
  }

  /** Where it publishes, and from which port; undefined while it does not. */
  get connection(): { readonly node: Kiln; readonly port: number } | undefined {
    const client = this.#client;
    const port = client?.client.socket.localPort;
    if (client === undefined || client.ended || port === undefined) return undefined;
    return { node: this.#node, port };
  }

  /** The connection is lost; it comes back. */
  drop(): void {
    this.#client?.close();
  }

  close(): void {
    this.#closed = true;
    this.#client?.close();
  }

  get #node(): Kiln {
    return this.#nodes[this.#at % this.#nodes.length] as Kiln;
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      this.#client = await this.#connect();
      if (this.#closed) this.#client?.close();
      else if (this.#client !== undefined) await isOver(this.#client);
      this.#client = undefined;
      this.#at += 1;
      await delay(AGAIN_MS);
    }
  }

  async #connect(): Promise<PictureClient | undefined> {
    const gone = AbortSignal.timeout(GIVE_UP_MS);
    const attempt = PictureClient.publish(this.#node, this.name).catch(() => undefined);
    // one that was taken after all is not wanted any more
    gone.addEventListener('abort', () => void attempt.then((client) => client !== this.#client && client?.close()));
    return await Promise.race([attempt, delay(GIVE_UP_MS, undefined)]);
  }
}

/** However long it lasts. */
async function isOver({ ended, client: { socket } }: PictureClient): Promise<void> {
  if (!ended) await new Promise<void>((resolve) => socket.once('close', () => resolve()));
}
