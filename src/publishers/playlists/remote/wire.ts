import Type, { type Static, type TSchema } from 'typebox';
import Value from 'typebox/value';
import { joinKey, splitKey } from '#cluster';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import { kilnError } from '../../../errors.ts';
import type { HlsForm } from '../form.ts';

/** Calls for a kind of HLS of a stream: `/kind/vhost/application/stream/what/file`, each name encoded. */
export function prefixOf({ kind }: HlsForm): string {
  return `/${kind}/`;
}

/** Of an answer that is an error: its name in the table of errors. */
export const ERROR_HEADER = 'hls-error';
/** Of an answer with media: part, segment or init. */
export const KIND_HEADER = 'hls-kind';
/** The same: video, audio or ts. */
export const TYPE_HEADER = 'hls-type';
/** How long a call for what comes next in a chunklist is held, if nothing does: players give up after 10 seconds. */
export const HELD_MS = 8000;
/** Players in one report. */
export const MAX_REPORTED = 1000;

/** Of a chunklist, as a call's `forms` names them. */
export const FORMS: readonly ChunklistForm[] = ['full', 'delta', 'legacy'];

/** `sessions` has no file. */
export type Wanted = 'master' | 'chunklist' | 'media' | 'sessions';

/** An output stream, by the names of what it is in. */
export interface StreamPath {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** A call, as its path tells. */
export interface Asked extends StreamPath {
  readonly what: string;
  readonly file: string;
  readonly query: URLSearchParams;
}

/** The path of a call. */
export function pathOf(
  form: HlsForm,
  { vhost, app, stream }: StreamPath,
  what: Wanted,
  file: string,
  query: URLSearchParams,
): string {
  const path = `${prefixOf(form)}${joinKey(vhost, app, stream, what, file)}`;
  return query.size === 0 ? path : `${path}?${query}`;
}

/** What a call asks for; names that are missing are empty. */
export function readPath(form: HlsForm, path: string): Asked {
  const [names = '', query] = path.slice(prefixOf(form).length).split('?', 2);
  const [vhost = '', app = '', stream = '', what = '', file = ''] = splitKey(names);
  return { vhost, app, stream, what, file, query: new URLSearchParams(query) };
}

const Counted = Type.Object({ msn: Type.Integer(), parts: Type.Integer() });

/** A chunklist as it is at its owner. */
export const ChunklistState = Type.Object({
  run: Type.String(),
  edition: Type.Number(),
  interrupted: Type.Boolean(),
  /** Seconds. */
  targetDuration: Type.Number({ minimum: 1 }),
  position: Type.Object({
    newest: Type.Optional(Counted),
    open: Type.Optional(Counted),
    partTarget: Type.Number(),
  }),
  texts: Type.Object({
    full: Type.Optional(Type.String()),
    delta: Type.Optional(Type.String()),
    legacy: Type.Optional(Type.String()),
  }),
});
/** See its schema. */
export type ChunklistState = Static<typeof ChunklistState>;

/** A master playlist for whoever may come, and the token of the session that was named. */
export const MasterState = Type.Object({
  run: Type.String(),
  template: Type.String(),
  token: Type.Optional(Type.String()),
});
/** See its schema. */
export type MasterState = Static<typeof MasterState>;

/** Players that a node serves: token, bytes since the last report, milliseconds since it was seen. */
export const Report = Type.Object({
  players: Type.Array(
    Type.Tuple([Type.String({ maxLength: 512 }), Type.Number({ minimum: 0 }), Type.Number({ minimum: 0 })]),
    {
      maxItems: MAX_REPORTED,
    },
  ),
  /** Of those who are not counted. */
  bytes: Type.Number({ minimum: 0 }),
});
/** See its schema. */
export type Report = Static<typeof Report>;

const Verdict = Type.Union([
  Type.Literal('counted'),
  Type.Literal('uncounted'),
  Type.Literal('kicked'),
  Type.Literal('refused'),
  Type.Literal('full'),
]);
/** What a player is to its stream; `refused`: now, as while another viewer has its name. */
export type Verdict = Static<typeof Verdict>;

/** About the players of a report, in order. */
export const Verdicts = Type.Object({ players: Type.Array(Verdict) });

/** What a call or an answer brings. @throws streamInterrupted for what a node of another version may send */
export function read<S extends TSchema>(schema: S, body: Buffer): Static<S> {
  const value = parse(body);
  if (!Value.Check(schema, value)) throw kilnError('streamInterrupted');
  return value;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
