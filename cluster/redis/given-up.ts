import type { Connection } from './connection.ts';
import { SCRIPTS } from './scripts.ts';

/** More than this are forgotten: they expire by themselves. */
const MAX = 500;

/** Claims that have ended here, or that may have been made without an answer: they are deleted in Redis, with retries. */
export class GivenUp {
  readonly #connection: Connection;
  #claims: { readonly key: string; readonly token: string }[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  add({ key, token }: { readonly key: string; readonly token: string }): void {
    this.#claims.push({ key, token });
  }

  /** @throws UnavailableError: call it again later */
  async report(): Promise<void> {
    const claims = this.#claims;
    if (claims.length === 0) return;
    this.#claims = [];
    try {
      await this.#connection.run(
        SCRIPTS.release,
        claims.flatMap(({ key, token }) => [key, token]),
      );
    } catch (error) {
      this.#claims = [...claims, ...this.#claims].slice(-MAX);
      throw error;
    }
  }
}
