import Type, { type Static } from 'typebox';
import { MediaDescription, PlaylistRequest, ChunklistState } from '../sessions/wire.ts';
import type { HlsForm } from '../package/hls-form.ts';

/** How often both ends say something, whatever there is of the stream. */
export const ALIVE_MS = 1000;
/** Of frames: a chunklist in each form, and a part. */
export const FEED_LIMITS = { head: 8 * 1024 * 1024, body: 32 * 1024 * 1024 };
/** Of frames in the other direction. */
export const REQUEST_LIMITS = { head: 16 * 1024, body: 0 };
/** Chunklists on one connection. */
export const MAX_FOLLOWED = 256;

/** Path of the streams of bytes on which a node has chunklists, and the parts that they tell of, sent to it. */
export function feedPath({ kind }: HlsForm): string {
  return `/${kind}-feed`;
}

/** What is to be sent from now on, in place of what was before; `leave`: nothing of that file any more; `alive`: as it is. */
export const FeedRequest = Type.Union([
  Type.Object({ ...PlaylistRequest, /** With the parts. */ parts: Type.Boolean() }),
  Type.Object({ file: Type.String(), leave: Type.Literal(true) }),
  Type.Object({ alive: Type.Literal(true) }),
]);
/** See its schema. */
export type FeedRequest = Static<typeof FeedRequest>;

/** A chunklist, and with it the part that was hinted at, as the bytes of the frame; nothing: the connection is alive. */
export const FeedNews = Type.Union([
  Type.Object({
    file: Type.String(),
    /** Absent: nothing more of this file is sent; the answer to a call has the reason. */
    state: Type.Optional(ChunklistState),
    part: Type.Optional(Type.Object({ name: Type.String(), ...MediaDescription })),
  }),
  Type.Object({ file: Type.Optional(Type.Undefined()) }),
]);

const HINT = '#EXT-X-PRELOAD-HINT:';

/** The name of the part that a chunklist says comes next. */
export function hintOf(chunklist: string): string | undefined {
  const at = chunklist.lastIndexOf(HINT);
  return at < 0 ? undefined : /URI="([^"]+)"/.exec(chunklist.slice(at))?.[1];
}
