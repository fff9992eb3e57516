import Type, { type Static } from 'typebox';
import { MediaDescription, PlaylistRequest, ChunklistState } from '../sessions/wire.ts';
import type { HlsForm } from '../package/hls-form.ts';

/** Interval at which both ends send something, even without news. */
export const ALIVE_MS = 1000;
/** Limits of frames: a chunklist in each form, and a part. */
export const FEED_LIMITS = { head: 8 * 1024 * 1024, body: 32 * 1024 * 1024 };
/** Limits of frames in the other direction. */
export const REQUEST_LIMITS = { head: 16 * 1024, body: 0 };
/** Chunklists per connection. */
export const MAX_FOLLOWED = 256;

/** Path of the byte streams for chunklists and the parts that they announce. */
export function feedPath({ kind }: HlsForm): string {
  return `/${kind}-feed`;
}

/** Chunklist to send from now on, in place of an earlier request for it; `leave`: stop sending that file; `alive`: no change. */
export const FeedRequest = Type.Union([
  Type.Object({ ...PlaylistRequest, /** With the parts. */ parts: Type.Boolean() }),
  Type.Object({ file: Type.String(), leave: Type.Literal(true) }),
  Type.Object({ alive: Type.Literal(true) }),
]);
export type FeedRequest = Static<typeof FeedRequest>;

/** Chunklist, with the announced part as the bytes of the frame; without a file: the connection is alive. */
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

/** Name of the part that a chunklist announces as the next. */
export function hintOf(chunklist: string): string | undefined {
  const at = chunklist.lastIndexOf(HINT);
  return at < 0 ? undefined : /URI="([^"]+)"/.exec(chunklist.slice(at))?.[1];
}
