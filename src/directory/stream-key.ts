import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { joinKey, splitKey, type Json } from '#cluster';

/** An input stream as its claim describes it. */
const StreamMeta = Type.Object({
  /** It is listed. */
  live: Type.Boolean(),
  /** Milliseconds since 1970. */
  created: Type.Number(),
  /** Generation of its application, which has none of its earlier streams after a restart. */
  generation: Type.Number(),
  /** Names of its output streams, that viewers ask for. */
  outputs: Type.Array(Type.String()),
  /** More output streams will follow; absent from nodes of earlier versions. */
  starting: Type.Optional(Type.Boolean()),
  /** Its publisher was asked to come to another node: whoever publishes it there takes it over. */
  handsOver: Type.Optional(Type.Boolean()),
  /** There is no stream yet: something is being created that will make it, and nobody takes the name over. */
  reserves: Type.Optional(Type.Boolean()),
});
export type StreamMeta = Static<typeof StreamMeta>;

/** Under which the claims of all input streams lie. */
export const STREAMS = 'stream';

/** What names an input stream in the whole cluster. */
export interface StreamName {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** Key of an input stream's claim. */
export function streamKey({ vhost, app, stream }: StreamName): string {
  return joinKey(STREAMS, vhost, app, stream);
}

/** The stream that a key is of. */
export function streamOfKey(key: string): StreamName {
  const [, vhost = '', app = '', stream = ''] = splitKey(key);
  return { vhost, app, stream };
}

/** What modules keep for the stream that continues it, by key; empty if a node of another version left something else. */
export function readContinuity(inherited: Json | undefined): Map<string, unknown> {
  const isRecord = typeof inherited === 'object' && inherited !== null && !Array.isArray(inherited);
  return new Map(isRecord ? Object.entries(inherited) : []);
}

/** undefined for what a node of another version may have left. */
export function readMeta(meta: Json | undefined): StreamMeta | undefined {
  return Value.Check(StreamMeta, meta) ? meta : undefined;
}
