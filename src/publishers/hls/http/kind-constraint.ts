import type { IncomingMessage } from 'node:http';

/** Name of the constraint that separates routes of one path by the kind of HLS. */
export const KIND = 'hls';

/** File names that only HLS with MPEG-TS has, or the query that asks for it (docs/compatibility.md#hls). */
const TS = /\/(?:ts(?::|%3a)[^/?]*|medialist_[^/?]*|[^/?]*(?:\.ts|_hls\.vtt))(?:\?|$)|[?&]format=ts(?:&|$)/i;

/** Tests whether the URL of a request asks for MPEG-TS. */
export function isTs(url: string): boolean {
  return TS.test(url);
}

/** Fastify constraint for several routes of one path: `ts` for requests for MPEG-TS. */
export const kindConstraint = {
  name: KIND,
  storage: <Handler>() => {
    const handlers = new Map<unknown, Handler>();
    return {
      get: (kind: unknown) => handlers.get(kind) ?? null,
      set: (kind: unknown, handler: Handler) => void handlers.set(kind, handler),
    };
  },
  deriveConstraint: ({ url = '' }: IncomingMessage) => (isTs(url) ? 'ts' : undefined),
};
