import type { Connection } from './connection.ts';
import { SCRIPTS } from './scripts.ts';

/** More are forgotten: they run out by themselves. */
const MAX = 500;

/** Claims that are over here, or of which it is not known whether they were made: Redis is told until it has heard. */
export class GivenUp {
  readonly #connection: Connection;
  #claims: { readonly key: string; readonly token: string }[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  add({ key, token }: { readonly key: string; readonly token: string }): void {
    this.#claims.push({ key, token });
  }

  /** @throws UnavailableError: it is to be called again */
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
