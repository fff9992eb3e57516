import type { IncomingMessage } from 'node:http';

/** Name of the constraint that separates WHIP and WHEP from other routes of the same path. */
export const TARGET = 'signalling';

/** Key made by `ResourceNeighbours`; no name of a playlist. */
const KEY = '[0-9a-f-]{36}\\.[0-9a-f]+';
const IS_KEY = new RegExp(`^${KEY}$`);
const SESSION = new RegExp(`^/[^/?]+/[^/?]+/${KEY}(?:\\?|$)`);
const HAS_DIRECTION = /[?&]direction=/;

/** Whether a path element may be the key of a session. */
export function isKey(element: string): boolean {
  return IS_KEY.test(element);
}

/** Fastify constraint: `session` for the path of a session, else `endpoint` for a URL with `?direction=`. */
export const targetConstraint = {
  name: TARGET,
  storage: <Handler>() => {
    const handlers = new Map<unknown, Handler>();
    return {
      get: (target: unknown) => handlers.get(target) ?? null,
      set: (target: unknown, handler: Handler) => void handlers.set(target, handler),
    };
  },
  deriveConstraint: ({ url = '' }: IncomingMessage) => {
    if (SESSION.test(url)) return 'session';
    return HAS_DIRECTION.test(url) ? 'endpoint' : undefined;
  },
};
