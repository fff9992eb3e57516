import type { IncomingMessage } from 'node:http';

/** Name of the constraint that tells routes of one path apart by the kind of HLS. */
export const KIND = 'hls';

/** Names of files that only HLS with MPEG-TS has, and the query that asks for any playlist in it (docs/compatibility.md#hls). */
const TS = /\/(?:ts(?::|%3a)[^/?]*|medialist_[^/?]*|[^/?]*\.ts)(?:\?|$)|[?&]format=ts(?:&|$)/i;

/** Fastify's way to let several routes of one path be: `ts` for what is asked for in MPEG-TS. */
export const kindConstraint = {
  name: KIND,
  storage: <Handler>() => {
    const handlers = new Map<unknown, Handler>();
    return {
      get: (kind: unknown) => handlers.get(kind) ?? null,
      set: (kind: unknown, handler: Handler) => void handlers.set(kind, handler),
    };
  },
  deriveConstraint: ({ url = '' }: IncomingMessage) => (TS.test(url) ? 'ts' : undefined),
};
