import type { Application } from '../../../core/application.ts';
import type { Registry } from '../../../core/registry.ts';
import { BoundedMap } from '../../../lib/bounded-map.ts';
import { namesVhost, vhostOf, type SessionTokens } from '../answer/token.ts';

/** Remembered tokens that were verified, of as many players as one stream counts; the oldest are forgotten first. */
const MAX_KNOWN = 50_000;

/** Finds the applications of players that a guard redirected to another virtual host, which their tokens name. */
export class Redirected {
  readonly #registry: Registry;
  readonly #tokens: (application: Application, stream: string) => SessionTokens;
  readonly #known = new BoundedMap<string, Application>(MAX_KNOWN);

  constructor(registry: Registry, tokens: (application: Application, stream: string) => SessionTokens) {
    this.#registry = registry;
    this.#tokens = tokens;
  }

  /** @returns undefined for a token that names no virtual host, or is not of the stream */
  find(app: string, stream: string, token: string): Application | undefined {
    if (!namesVhost(token)) return undefined;
    const key = `${app}/${stream}/${token}`;
    const known = this.#known.get(key);
    if (known?.closed === false) return known;
    const application = this.#registry.vhosts.get(vhostOf(token) ?? '')?.applications.get(app);
    if (application === undefined || this.#tokens(application, stream).verify(token) === undefined) return undefined;
    this.#known.set(key, application);
    return application;
  }
}
