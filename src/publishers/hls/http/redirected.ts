import type { Application } from '../../../core/application.ts';
import type { Registry } from '../../../core/registry.ts';
import { namesVhost, vhostOf, type SessionTokens } from '../answer/token.ts';

/** Tokens whose check is remembered, the oldest forgotten first. */
const MAX_KNOWN = 10_000;

/** Finds the applications of players that a guard has sent to another virtual host than the one they ask: their tokens name it. */
export class Redirected {
  readonly #registry: Registry;
  readonly #tokens: (application: Application, stream: string) => SessionTokens;
  readonly #known = new Map<string, Application>();

  constructor(registry: Registry, tokens: (application: Application, stream: string) => SessionTokens) {
    this.#registry = registry;
    this.#tokens = tokens;
  }

  /** @returns undefined for every token that names no virtual host, and for those that are not of the stream */
  find(app: string, stream: string, token: string): Application | undefined {
    if (!namesVhost(token)) return undefined;
    const key = `${app}/${stream}/${token}`;
    const known = this.#known.get(key);
    if (known?.closed === false) return known;
    const application = this.#registry.vhosts.get(vhostOf(token) ?? '')?.applications.get(app);
    if (application === undefined || this.#tokens(application, stream).verify(token) === undefined) return undefined;
    this.#known.set(key, application);
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value as string);
    return application;
  }
}
