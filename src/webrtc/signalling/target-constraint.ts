import type { IncomingMessage } from 'node:http';

/** Name of the constraint that tells WHIP and WHEP from what else is under the same path. */
export const TARGET = 'signalling';

/** A key that `Resources` makes, and no name of a playlist. */
const KEY = '[0-9a-f-]{36}\\.[0-9a-f]+';
const IS_KEY = new RegExp(`^${KEY}$`);
const SESSION = new RegExp(`^/[^/?]+/[^/?]+/${KEY}(?:\\?|$)`);
const HAS_DIRECTION = /[?&]direction=/;

/** Whether a path element may be the key of a session. */
export function isKey(element: string): boolean {
  return IS_KEY.test(element);
}

/** Fastify's way to let several routes of one path be: `session` for the path of one, else `endpoint` for a URL with `?direction=`. */
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
