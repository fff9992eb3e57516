import { setTimeout as delay } from 'node:timers/promises';
import { inPlace, urisOf } from '../hls/playlist-uris.ts';
import { until } from '../time/until.ts';
import { HttpConnection } from './http-connection.ts';
import { parseChunklist } from './llhls-player.ts';

const EVERY_MS = 1000;

/** Fetches the newest part of every rendition of a stream once a second. */
export class PartPoller {
  renditions = 0;
  parts = 0;
  /** What ended the polling of a rendition before the poller was closed. */
  readonly failures: string[] = [];
  readonly #port: number;
  readonly #connections: HttpConnection[] = [];
  #closed = false;

  private constructor(port: number) {
    this.#port = port;
  }

  /** Begins as soon as the stream is there. @param master path of its master playlist */
  static async start(port: number, master: string): Promise<PartPoller> {
    const poller = new PartPoller(port);
    const connection = poller.#connect();
    const { body } = await until('the master playlist', async () => {
      const answer = await connection.get(master);
      return answer.status === 200 && answer;
    });
    const chunklists = urisOf(body.toString(), master);
    poller.renditions = chunklists.length;
    for (const chunklist of chunklists) {
      poller.#poll(chunklist).catch((error: Error) => {
        if (!poller.#closed) poller.failures.push(error.message);
      });
    }
    return poller;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections) connection.close();
  }

  async #poll(chunklist: string): Promise<void> {
    const connection = this.#connect();
    for (let next = performance.now(); !this.#closed; next += EVERY_MS) {
      await delay(Math.max(0, next - performance.now()));
      const newest = parseChunklist((await this.#get(connection, chunklist)).toString('latin1')).parts.at(-1);
      if (newest === undefined) continue;
      await this.#get(connection, inPlace(newest, chunklist));
      this.parts++;
    }
  }

  async #get(connection: HttpConnection, path: string): Promise<Buffer> {
    const { status, body } = await connection.get(path);
    if (status !== 200) throw new Error(`${status} for ${path}`);
    return body;
  }

  #connect(): HttpConnection {
    const connection = new HttpConnection(this.#port);
    this.#connections.push(connection);
    return connection;
  }
}
