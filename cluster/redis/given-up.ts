import type { Connection } from './connection.ts';
import { SCRIPTS } from './scripts.ts';

/** More than this are forgotten: they last as long as this node then. */
const MAX = 100_000;
/** In one step: others wait for Redis meanwhile. */
const BATCH = 500;

interface Claim {
  readonly key: string;
  readonly token: string;
}

/** Claims that have ended here, or that may have been made without an answer: they are deleted in Redis, with retries. */
export class GivenUp {
  readonly #connection: Connection;
  #claims: (Claim & { readonly from: number })[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** @param from when Redis may be told, on the monotonic clock */
  add({ key, token }: Claim, from = -Infinity): void {
    this.#claims.push({ key, token, from });
  }

  /** @throws UnavailableError: call it again later */
  async report(): Promise<void> {
    const now = performance.now();
    const due = this.#claims.filter(({ from }) => from <= now);
    if (due.length === 0) return;
    this.#claims = this.#claims.filter(({ from }) => from > now);
    for (let at = 0; at < due.length; at += BATCH) {
      try {
        await this.#connection.run(
          SCRIPTS.release,
          due.slice(at, at + BATCH).flatMap(({ key, token }) => [key, token]),
        );
      } catch (error) {
        this.#claims = [...due.slice(at), ...this.#claims].slice(-MAX);
        throw error;
      }
    }
  }
}
