import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { joinKey, splitKey, type Json } from '#cluster';

const StreamMeta = Type.Object({
  /** Whether its tracks are known, so that it is listed. */
  live: Type.Boolean(),
  /** Milliseconds since 1970. */
  created: Type.Number(),
  /** Generation of its application; after a restart the application has none of the earlier streams. */
  generation: Type.Number(),
  outputs: Type.Array(Type.String()),
  /** Whether more output streams will follow; absent from nodes of earlier versions. */
  starting: Type.Optional(Type.Boolean()),
  /** Whether its publisher was asked to move to another node, where it takes the name over. */
  handsOver: Type.Optional(Type.Boolean()),
  /** Whether its publisher is away, and any publisher takes the name over; no other slate does. */
  vacant: Type.Optional(Type.Boolean()),
  /** Whether there is no stream yet: the name is reserved for one that is being created, and no publisher takes it over. */
  reserves: Type.Optional(Type.Boolean()),
});
export type StreamMeta = Static<typeof StreamMeta>;

/** Key space of the claims of all input streams. */
export const STREAMS = 'stream';

/** Identity of an input stream in the whole cluster. */
export interface StreamName {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

export function streamKey({ vhost, app, stream }: StreamName): string {
  return joinKey(STREAMS, vhost, app, stream);
}

export function streamOfKey(key: string): StreamName {
  const [, vhost = '', app = '', stream = ''] = splitKey(key);
  return { vhost, app, stream };
}

/** Data that modules keep for the stream that continues this one, by key; empty if a node of another version wrote it. */
export function readContinuity(inherited: Json | undefined): Map<string, unknown> {
  const isRecord = typeof inherited === 'object' && inherited !== null && !Array.isArray(inherited);
  return new Map(isRecord ? Object.entries(inherited) : []);
}

/** Parses a claim's meta; undefined for what a node of another version may have left. */
export function readMeta(meta: Json | undefined): StreamMeta | undefined {
  return Value.Check(StreamMeta, meta) ? meta : undefined;
}
