import Type, { type Static } from 'typebox';
import { GRANT_STATE } from '../../../access/grant.ts';
import { OPENING } from '../../../access/opening.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import { definePeerCall, STREAM_FIELDS, type PeerCall } from '../../../peers/peer-call.ts';
import type { HlsForm } from '../package/hls-form.ts';

/** How long a call for what comes next in a chunklist is held, if nothing does: players give up after 10 seconds. */
export const HELD_MS = 8000;
/** Players in one report. */
export const MAX_REPORTED = 1000;

/** Of a chunklist, as a call's `forms` names them. */
export const FORMS: readonly ChunklistForm[] = ['full', 'delta', 'legacy'];

/** An output stream, by the names of what it is in. */
export interface StreamPath {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

const Form = Type.Union([Type.Literal('full'), Type.Literal('delta'), Type.Literal('legacy')]);
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
    ended: Type.Optional(Type.Boolean()),
  }),
  texts: Type.Object({
    full: Type.Optional(Type.String()),
    delta: Type.Optional(Type.String()),
    legacy: Type.Optional(Type.String()),
  }),
  /** The owner sends the stream to enough nodes: who asks is to have it from one of those from now on. */
  atCapacity: Type.Optional(Type.Boolean()),
});
/** See its schema. */
export type ChunklistState = Static<typeof ChunklistState>;

/** A master playlist for whoever may come, and the token of the player that asks for it, if the call names one. */
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
    Type.Tuple([Type.String({ maxLength: 1024 }), Type.Number({ minimum: 0 }), Type.Number({ minimum: 0 })]),
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

/** A player that asks for a master playlist, under the id of its session. */
export const Newcomer = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 128 }),
  /** False for who asks for no more than the headers, and is not counted. */
  plays: Type.Boolean(),
  guarded: Type.Boolean(),
  /** Of the stream, where the player asked another one. */
  vhost: Type.Optional(Type.String()),
  /** Goes to the owner of the stream, if there is a master playlist and the player plays. */
  grant: GRANT_STATE,
});
/** See its schema. */
export type Newcomer = Static<typeof Newcomer>;

/** Sessions of a stream that another node has taken over. */
const HandedSessions = Type.Array(
  Type.Object({
    id: Type.String({ minLength: 1, maxLength: 128 }),
    idleMs: Type.Number({ minimum: 0 }),
    grants: Type.Array(
      Type.Object({ until: Type.Optional(Type.Number()), openings: Type.Array(Type.Pick(OPENING, ['id', 'vhost'])) }),
    ),
  }),
  { maxItems: MAX_REPORTED },
);

/** About the players of a report, in order. */
export const Verdicts = Type.Object({ players: Type.Array(Verdict) });

/** Of an output stream. */
const File = {
  ...STREAM_FIELDS,
  file: Type.String(),
  /** Milliseconds that the owner may hold the call for what is to come. */
  holdMs: Type.Optional(Type.Number({ minimum: 0, maximum: HELD_MS })),
  /** The owner, as the node that asks knows it, by incarnation: who is asked has the stream from that one. */
  relayOf: Type.Optional(Type.String()),
};

/** For a chunklist. */
export const PlaylistRequest = {
  ...File,
  /** The mark of the position that is known: what comes after it. */
  after: Type.Optional(Type.String()),
  forms: Type.Array(Form, { maxItems: 3 }),
  /** Players whom the node that asks counts itself. */
  viewers: Type.Optional(Type.Integer({ minimum: 0 })),
};

/** What a piece of media is. */
export const MediaDescription = {
  kind: Type.Union([Type.Literal('part'), Type.Literal('segment'), Type.Literal('init')]),
  type: Type.Union([Type.Literal('video'), Type.Literal('audio'), Type.Literal('ts')]),
};

/** Requests of other nodes to the owner of a stream, or to one that has it from there. `null` is the answer while the playlist has not begun. */
export interface PlaylistCalls {
  /** A master playlist, and the token of a session that is named, or has openings. */
  readonly master: typeof MASTER;
  /** A chunklist, as soon as it is not at the mark `after`, or when it was held for as long as it may be. */
  readonly chunklist: typeof CHUNKLIST;
  /** A part, a segment or an initialization; a call for a part that was hinted at is held. */
  readonly media: typeof MEDIA;
  readonly report: typeof REPORT;
  /** The same to the node that counts the players, by their tokens. */
  readonly visits: typeof VISITS;
  /** Ids of sessions that were ended by the server. */
  readonly kicked: typeof KICKED;
  /** From the node that had the stream before: sessions whose end somebody is to hear of. */
  readonly sessions: typeof SESSIONS;
}

const MASTER = definePeerCall(
  'master',
  Type.Object({ ...File, session: Type.Optional(Newcomer) }),
  Type.Union([MasterState, Type.Null()]),
);
const CHUNKLIST = definePeerCall('chunklist', Type.Object(PlaylistRequest), Type.Union([ChunklistState, Type.Null()]));
const MEDIA = definePeerCall('media', Type.Object(File), Type.Object(MediaDescription));
const REPORT = definePeerCall('report', Type.Object({ ...STREAM_FIELDS, report: Report }), Verdicts);
const VISITS = definePeerCall('visits', REPORT.request, Verdicts);
const KICKED = definePeerCall('kicked', Type.Object(STREAM_FIELDS), Type.Array(Type.String()));
const SESSIONS = definePeerCall('sessions', Type.Object({ ...STREAM_FIELDS, sessions: HandedSessions }), Type.Null());

/** The calls for a kind of HLS. */
export function callsOf({ kind }: HlsForm): PlaylistCalls {
  const named = <C extends PeerCall>(call: C): C => ({ ...call, name: `${kind}/${call.name}` });
  return {
    master: named(MASTER),
    chunklist: named(CHUNKLIST),
    media: named(MEDIA),
    report: named(REPORT),
    visits: named(VISITS),
    kicked: named(KICKED),
    sessions: named(SESSIONS),
  };
}
